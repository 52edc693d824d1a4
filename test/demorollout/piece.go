package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/rollouts"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traffic"
)

const (
	// seed makes the workload the same each time.
	seed = 1
	// between is how many turns run to their end between two changes.
	between = 300
	// arrivals is the time between two sessions, in the workload's own time.
	arrivals = 2 * time.Second
)

// changes are what is shown, one of each strategy.
func changes() []rollouts.Change {
	return []rollouts.Change{
		{Version: "step-1", Strategy: "AllAtOnce", More: "clearing: Drain"},
		{Version: "step-2", Strategy: "Rolling", More: "maxUnavailable: 2"},
		{Version: "step-3", Strategy: "InPlace"},
	}
}

// piece is one showing.
type piece struct {
	options options
	system  *local.System
	history *local.History
	player  *traffic.Player
	done    []rollouts.Done
	from    time.Time
	to      time.Time

	mu    sync.Mutex
	turns []turn // guarded by mu
}

// turn is what a client was told of a turn that ran to its end.
type turn struct {
	rid, granted string
	mixed        bool
}

func (p *piece) say(line string) { p.options.local.Say(line) }

// play brings the pool to its first version, lets the traffic flow and makes the changes.
func (p *piece) play(ctx context.Context) (err error) {
	if err := p.system.ApplySample(ctx); err != nil {
		return err
	}
	if err := p.system.Until(ctx, "every engine to serve", story.AllServe(p.options.local.Engines)); err != nil {
		return err
	}
	if p.history, err = p.system.Record(ctx); err != nil {
		return err
	}
	p.say("spec.weights: version step-0, which every engine loads before the first lease")
	if _, err := rollouts.Make(ctx, p.system, rollouts.Change{Version: "step-0", Strategy: "AllAtOnce"}); err != nil {
		return err
	}
	log, err := execlog.Open(p.clientLog(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	pool, err := client.New(client.Config{BaseURL: p.system.PoolURL()})
	if err != nil {
		return err
	}
	defer pool.Close()
	return p.perform(ctx, pool, log)
}

// perform runs traffic and changes side by side.
func (p *piece) perform(ctx context.Context, pool *client.Pool, log *execlog.Writer) error {
	sessions, err := workload.Limits{Sessions: p.options.sessions, Every: arrivals}.Generate(seed)
	if err != nil {
		return err
	}
	enough := make(chan struct{})
	p.player, err = traffic.New(traffic.Config{
		Pool: pool, Sessions: sessions, Sender: func(int) string { return "train" }, Epoch: 1,
		Speed: p.options.local.Speed, Log: log, Until: enough, Each: p.heard,
	})
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case err := <-p.system.Broken():
			fail(err)
		case <-ctx.Done():
		}
	}()
	go func() {
		defer close(enough)
		if err := p.change(ctx); err != nil {
			fail(err)
		}
	}()
	if err := p.player.Run(ctx); err != nil {
		return err
	}
	return p.system.UntilNothingCounted(ctx)
}

// heard notes what a client was told.
func (p *piece) heard(_ string, r *client.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns = append(p.turns, turn{r.Lease.RID, r.Lease.WeightVersion, r.Mixed})
}

// change makes the changes, each while the traffic flows.
func (p *piece) change(ctx context.Context) error {
	if err := p.player.AwaitDone(ctx, between); err != nil {
		return err
	}
	p.from = time.Now()
	if err := p.player.AwaitDone(ctx, 2*between); err != nil {
		return err
	}
	for _, c := range changes() {
		p.say(fmt.Sprintf("spec.weights: version %s by %s", c.Version, c.Strategy))
		done, err := rollouts.Make(ctx, p.system, c)
		if err != nil {
			return err
		}
		p.done = append(p.done, done)
		p.say(fmt.Sprintf("  %s is published and on every backend after %.1f s", c.Version, done.Ended.Sub(done.Begun).Seconds()))
		if err := p.player.AwaitDone(ctx, p.player.Counts("").Done+between); err != nil {
			return err
		}
	}
	p.to = time.Now()
	return nil
}

func (p *piece) clientLog() string { return filepath.Join(p.options.local.Work, "clients.jsonl") }
