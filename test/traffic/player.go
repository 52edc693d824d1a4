package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// Plant is a fault that is put into the clients on purpose.
type Plant string

const (
	// PlantNone: the clients keep the protocol.
	PlantNone Plant = ""
	// PlantReplay: in some sessions the client is unsure of its first request
	// and repeats it at once, which is what the protocol is there to prevent.
	PlantReplay Plant = "replay"
)

// Config is a workload and where it goes.
type Config struct {
	// Pool is the pool to generate on.
	Pool *client.Pool
	// Sessions is the workload.
	Sessions []workload.Session
	// Sender gives the sender of the i-th session.
	Sender func(i int) string
	// Epoch is the pool's epoch.
	Epoch int64
	// Speed is by how much the workload's time is compressed, above 0.
	Speed float64
	// Log takes what the clients were told.
	Log *execlog.Writer
	// Plant is a fault to put into the clients.
	Plant Plant
	// Each, if not nil, is told of every turn that ran to its end. It is called by many at once.
	Each func(sender string, r *client.Result)
	// Until, if not nil, lets every session be followed by another like it
	// until it is closed. Nil: each is played once.
	Until <-chan struct{}
}

// Player replays a workload.
type Player struct {
	config Config
	ledger *ledger

	mu     sync.Mutex
	played []Played // guarded by mu
}

// Played is a session that has begun.
type Played struct {
	workload.Session
	Sender string
}

// New returns a player that has not begun.
func New(c Config) (*Player, error) {
	switch {
	case c.Pool == nil || c.Sender == nil || c.Log == nil:
		return nil, errors.New("traffic: Pool, Sender and Log must be set")
	case len(c.Sessions) == 0:
		return nil, errors.New("traffic: Sessions is empty")
	case c.Speed <= 0:
		return nil, fmt.Errorf("traffic: Speed is %g, not above 0", c.Speed)
	case c.Plant != PlantNone && c.Plant != PlantReplay:
		return nil, fmt.Errorf("traffic: Plant is %q, not %q", c.Plant, PlantReplay)
	}
	return &Player{config: c, ledger: newLedger()}, nil
}

// Run plays all sessions. It returns once every one has ended, with the first
// failure; a failure ends the others.
func (p *Player) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer p.ledger.end()
	begun := time.Now()
	var running sync.WaitGroup
	for i, session := range p.config.Sessions {
		running.Go(func() {
			if err := p.follow(ctx, begun, i, session); err != nil {
				fail(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// follow plays a session, and others like it for as long as it may.
func (p *Player) follow(ctx context.Context, begun time.Time, number int, session workload.Session) error {
	one := Played{Session: session, Sender: p.config.Sender(number)}
	for round := 1; ; round++ {
		if err := p.play(ctx, begun, number, one); err != nil {
			return fmt.Errorf("session %s: %w", one.ID, err)
		}
		select {
		case <-p.config.Until: // a nil channel never is ready
			return nil
		default:
		}
		if p.config.Until == nil {
			return nil
		}
		one.ID = fmt.Sprintf("%s.%d", session.ID, round)
	}
}

// Sessions returns the sessions that have begun.
func (p *Player) Sessions() []Played {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.played)
}

// Counts returns what a sender has done so far; the empty name stands for all.
func (p *Player) Counts(sender string) Counts {
	counts, _, _ := p.ledger.of(sender)
	return counts
}

// Started returns how many requests of a sender have been granted a lease.
func (p *Player) Started(sender string) int { return p.Counts(sender).Started }

// Await waits until a sender has started so many requests, and fails when all
// traffic ends before.
func (p *Player) Await(ctx context.Context, sender string, started int) error {
	return p.ledger.await(ctx, sender, func(c Counts) bool { return c.Started >= started })
}

// AwaitDone waits until so many turns have run to their end.
func (p *Player) AwaitDone(ctx context.Context, turns int) error {
	return p.ledger.await(ctx, "", func(c Counts) bool { return c.Done >= turns })
}

// compress turns a time of the workload into real time.
func (p *Player) compress(d time.Duration) time.Duration {
	return time.Duration(float64(d) / p.config.Speed)
}

// rest waits until a moment, or says why ctx has ended before.
func rest(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
