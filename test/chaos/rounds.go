package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traffic"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// roundPatience bounds one round: what happens, a take-over, and the end of the traffic.
const roundPatience = 6 * time.Minute

// chaos is one run.
type chaos struct {
	system *local.System
	random *rand.Rand
	grants *grants
	pool   *client.Pool
	log    string // path of the clients' log
	say    func(string)
	// player is the traffic of this round, and played all sessions so far.
	player *traffic.Player
	played []traffic.Played
	// versions counts the versions of the weights that were asked for.
	versions int
	// asked counts the calls of our own, and unused are leases that they were given.
	asked  atomic.Int64
	unused [][]byte
}

// start brings the system up.
func start(ctx context.Context, c local.Config, seed uint64) (*chaos, error) {
	system, err := local.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	x := &chaos{
		system: system, say: c.Say, random: rand.New(rand.NewPCG(seed, 0)), grants: &grants{},
		log: filepath.Join(filepath.Dir(system.Logs()), "clients.jsonl"),
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}
	x.pool, err = client.New(client.Config{BaseURL: system.PoolURL(), Transport: witness{transport, x.grants}})
	if err == nil {
		err = x.openPool(ctx)
	}
	if err != nil {
		system.Close()
		return nil, err
	}
	return x, nil
}

// leaseTerms are short of the wait for counts to be zero: what was released to a leader that did not know of
// the next one counts with that one until it expires.
const leaseTerms = "ttlSeconds: 60"

// openPool makes the pool and waits until all of it serves.
func (x *chaos) openPool(ctx context.Context) error {
	if err := x.system.ApplySample(ctx); err != nil {
		return err
	}
	if err := x.system.SetLeases(ctx, leaseTerms); err != nil {
		return err
	}
	return x.system.Until(ctx, "every engine to serve", story.AllServe(len(x.system.EngineNames())))
}

// rounds lets each kind have its turn, so many in all, and judges after each.
func rounds(ctx context.Context, c local.Config, list []kind, n int, seed uint64) error {
	x, err := start(ctx, c, seed)
	if err != nil {
		return err
	}
	defer x.system.Close()
	for i := range n {
		k := list[i%len(list)]
		begun := time.Now()
		told, err := x.round(ctx, k, i)
		if err != nil {
			return fmt.Errorf("round %d, %s: %w", i, k.name, err)
		}
		x.say(fmt.Sprintf("round %d: %s; %s (%.0f s)", i, k.name, told, time.Since(begun).Seconds()))
	}
	return nil
}

// round has traffic run, lets something happen in the middle of it, and judges once it has ended.
func (x *chaos) round(ctx context.Context, k kind, number int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	if k.strike == nil {
		if err := x.beginAnew(ctx); err != nil {
			return "", err
		}
	}
	err := x.underTraffic(ctx, number, func(ctx context.Context) error { return x.happen(ctx, k) })
	if err != nil {
		return "", err
	}
	for _, lease := range x.unused {
		if err := x.giveBack(ctx, lease); err != nil {
			return "", err
		}
	}
	x.unused = nil
	if err := x.system.UntilNothingKnownCounted(ctx); err != nil {
		return "", err
	}
	return x.judge()
}

// underTraffic has sessions follow one another while something happens, and returns when the last
// of them has ended.
func (x *chaos) underTraffic(ctx context.Context, number int, happen func(context.Context) error) (err error) {
	log, err := execlog.Open(x.log, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	sessions, err := sessionsOf(number)
	if err != nil {
		return err
	}
	enough := make(chan struct{})
	x.player, err = traffic.New(traffic.Config{
		Pool: x.pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Until: enough,
		Sender: func(int) string { return "train" },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- x.player.Run(ctx) }()
	if err := happen(ctx); err != nil {
		cancel()
		return errors.Join(err, <-over)
	}
	close(enough)
	err = <-over
	x.played = append(x.played, x.player.Sessions()...)
	return err
}

// sessionsOf is the traffic of a round, under names of its own.
func sessionsOf(number int) ([]workload.Session, error) {
	sessions, err := workload.Limits{Sessions: 32, Turns: 4, Output: 1024}.Generate(1)
	for i := range sessions {
		sessions[i].ID = fmt.Sprintf("round%d-%s", number, sessions[i].ID)
	}
	return sessions, err
}

// happen does what is this round's turn to the leader, at some moment, and waits until leases are
// granted again and everything is right.
func (x *chaos) happen(ctx context.Context, k kind) error {
	if err := x.player.AwaitDone(ctx, 5+x.random.IntN(20)); err != nil || k.strike == nil {
		return err
	}
	leader, err := x.system.Leader(ctx)
	if err != nil {
		return err
	}
	term := x.grants.latest()
	mend, err := k.strike(x, ctx, leader)
	if err != nil {
		return err
	}
	if k.next == anotherLeads {
		if err := x.untilLater(ctx, term); err != nil {
			return err
		}
	}
	if err := x.more(ctx, 20); err != nil || mend == nil {
		return err
	}
	if err := mend(ctx); err != nil {
		return err
	}
	return x.more(ctx, 20)
}

// untilLater waits for a grant under a later term.
func (x *chaos) untilLater(ctx context.Context, term int64) error {
	return x.insist(ctx, "for another to lead", func(context.Context) error {
		if x.grants.latest() > term {
			return nil
		}
		return fmt.Errorf("leases are granted under term %d at most", term)
	})
}

// more waits until that many more requests have been granted a lease and have come back.
func (x *chaos) more(ctx context.Context, requests int) error {
	return x.player.Await(ctx, "", x.player.Started("")+requests)
}

// judge reads what engines and clients wrote down so far, and the log of grants.
func (x *chaos) judge() (string, error) {
	engines, err := execlog.ReadFiles(x.system.ExecutionLogs())
	if err != nil {
		return "", err
	}
	clients, err := execlog.ReadClientFiles(x.log)
	if err != nil {
		return "", err
	}
	// After a take-over a session may find another home: the new leader knows only what is presented.
	run := verdict.Run{Engines: engines, Clients: clients, Disturbed: x.system.EngineNames(), Senders: map[string]string{}}
	for _, session := range x.played {
		run.Sessions = append(run.Sessions, session.Session)
		run.Senders[session.ID] = session.Sender
	}
	faults := run.Faults()
	if overlap := x.grants.overlap(); overlap != "" {
		faults = append(faults, overlap)
	}
	if len(faults) > 0 {
		return "", fmt.Errorf("%d faults:\n%s", len(faults), strings.Join(faults, "\n"))
	}
	return fmt.Sprintf("%d executions so far, no turn twice, counts at zero, %d terms one after the other", len(engines), x.grants.terms()), nil
}
