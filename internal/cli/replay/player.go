package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// Config is a workload and the pool that it is played on.
type Config struct {
	Pool     *client.Pool
	Sessions []workload.Session
	// Prefix is put before the trace's session ids, so that two replays do not share sessions.
	Prefix string
	// Sender and Generation are as which the sessions ask, and Epoch is the pool's.
	Sender     string
	Generation int64
	Epoch      int64
	// Speed is by how much the trace's time is compressed, above 0.
	Speed float64
	// Wait is how long a turn waits for a lease.
	Wait  time.Duration
	Clock clock.Clock
	// Each is told of every turn as it ends; calls do not overlap. nil: nobody is.
	Each func(Turn)
}

// Turn is one turn that ended.
type Turn struct {
	Session string
	Backend string
	Tokens  int64
	// Took is the time from asking for the lease to the end of the reply; 0 for a turn that failed.
	Took time.Duration
	// Err is why it failed; nil: it did not.
	Err error
}

// Play plays every session and returns once all have ended, or ctx has. A turn that fails ends its
// session and no other. Nothing is tried twice beyond what the client does by itself.
func Play(ctx context.Context, c Config) error {
	var running sync.WaitGroup
	var mu sync.Mutex
	tell := func(t Turn) {
		mu.Lock()
		defer mu.Unlock()
		if c.Each != nil {
			c.Each(t)
		}
	}
	began := c.Clock.Now()
	for i := range c.Sessions {
		running.Go(func() { c.play(ctx, began, &c.Sessions[i], tell) })
	}
	running.Wait()
	return context.Cause(ctx)
}

func (c *Config) play(ctx context.Context, began time.Time, recorded *workload.Session, tell func(Turn)) {
	session := c.Pool.Session(client.SessionConfig{
		ID: c.Prefix + recorded.ID, Sender: c.Sender, SenderGeneration: c.Generation, Epoch: c.Epoch, Group: recorded.Group,
	})
	var history []int
	seed := len(recorded.ID)
	for _, b := range []byte(recorded.ID) {
		seed = (seed*31 + int(b)) % vocabulary
	}
	opened := false
	for i, turn := range recorded.Turns {
		if !c.until(ctx, began.Add(c.compressed(recorded.Arrival+turn.NotBefore))) {
			break
		}
		history = grow(history, turn.Prompt, seed)
		opened = true
		done := c.turn(ctx, session, history, turn.Output)
		done.Session = c.Prefix + recorded.ID
		tell(done)
		if done.Err != nil || i < len(recorded.Turns)-1 && !c.pause(ctx, c.compressed(turn.ToolGap)) {
			break
		}
	}
	if !opened {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = session.Close(ctx) // a session that is not closed is forgotten in time
}

func (c *Config) turn(ctx context.Context, session *client.Session, prompt []int, output int) Turn {
	began := c.Clock.Now()
	result, err := session.Generate(ctx, client.Request{
		Body: map[string]any{
			"input_ids":       prompt,
			"sampling_params": map[string]any{"max_new_tokens": output, "ignore_eos": true},
		},
		Wait: c.Wait,
	})
	t := Turn{Backend: session.LastBackend().Name, Err: err}
	if err == nil {
		t.Tokens, t.Took = result.OutputTokens, c.Clock.Since(began)
	}
	return t
}

// vocabulary bounds the token ids that are sent: every model has so many.
const vocabulary = 10000

// grow makes a prompt as long as recorded that begins as the turn before did, so that the engine's cache
// finds what it would have found. Traces do not say what was said.
func grow(history []int, length, seed int) []int {
	for i := len(history); i < length; i++ {
		history = append(history, 1+(seed+i*7919)%(vocabulary-1))
	}
	return history[:length]
}

func (c *Config) compressed(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.Speed)
}

func (c *Config) until(ctx context.Context, at time.Time) bool {
	return c.pause(ctx, at.Sub(c.Clock.Now()))
}

// pause waits, and reports whether ctx goes on.
func (c *Config) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := c.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// Validate names what cannot be played.
func (c *Config) Validate() error {
	switch {
	case len(c.Sessions) == 0:
		return errors.New("the trace has no sessions")
	case c.Speed <= 0:
		return fmt.Errorf("a speed of %g is not above 0", c.Speed)
	}
	return nil
}
