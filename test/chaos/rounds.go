package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traffic"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// roundPatience bounds one round: a take-over and some traffic after it.
const roundPatience = 3 * time.Minute

// chaos is one run.
type chaos struct {
	system *local.System
	player *traffic.Player
	random *rand.Rand
	log    string
	say    func(string)
}

func run(ctx context.Context, c local.Config, rounds int, seed uint64) error {
	system, err := local.Start(ctx, c)
	if err != nil {
		return err
	}
	defer system.Close()
	if err := system.ApplySample(ctx); err != nil {
		return err
	}
	if err := system.Until(ctx, "every engine to serve", story.AllServe(c.Engines)); err != nil {
		return err
	}
	x := &chaos{
		system: system, say: c.Say, random: rand.New(rand.NewPCG(seed, 0)),
		log: filepath.Join(filepath.Dir(system.Logs()), "clients.jsonl"),
	}
	if err := x.play(ctx, rounds); err != nil {
		return err
	}
	if err := system.UntilNothingKnownCounted(ctx); err != nil {
		return err
	}
	system.Close()
	return x.judge(c)
}

// play lets traffic flow through all rounds.
func (x *chaos) play(ctx context.Context, rounds int) (err error) {
	sessions, err := workload.Limits{Sessions: 32, Turns: 8, Output: 1024}.Generate(1)
	if err != nil {
		return err
	}
	log, err := execlog.Open(x.log, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	pool, err := client.New(client.Config{BaseURL: x.system.PoolURL()})
	if err != nil {
		return err
	}
	defer pool.Close()
	enough := make(chan struct{})
	x.player, err = traffic.New(traffic.Config{
		Pool: pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Until: enough,
		Sender: func(int) string { return "train" },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- x.player.Run(ctx) }()
	for i := range rounds {
		if err := x.round(ctx, i); err != nil {
			cancel()
			return errors.Join(fmt.Errorf("round %d: %w", i, err), <-played)
		}
	}
	close(enough)
	return <-played
}

// round takes the leader away in the middle of the traffic, and waits until another one grants.
func (x *chaos) round(ctx context.Context, number int) error {
	ctx, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	moment := x.player.Counts("").Done + 5 + x.random.IntN(20)
	if err := x.player.AwaitDone(ctx, moment); err != nil {
		return err
	}
	leader, err := x.system.Leader(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	how, err := x.strike(ctx, leader, number)
	if err != nil {
		return err
	}
	if err := x.player.Await(ctx, "", x.player.Started("")+20); err != nil {
		return err
	}
	x.say(fmt.Sprintf("round %d: %s %s; twenty more requests %.1f s later", number, leader.Name(), how, time.Since(begun).Seconds()))
	if how == frozen {
		return leader.Thaw()
	}
	return nil
}

// frozen is a leader that stands still until the round is over, and then goes on.
const frozen = "stood still"

// strike does to the leader what is this round's turn.
func (x *chaos) strike(ctx context.Context, leader *local.Replica, number int) (string, error) {
	how := "was killed"
	switch number % 3 {
	case 0:
		leader.Kill()
	case 1:
		return frozen, leader.Freeze()
	default:
		how = "ended cleanly"
		leader.Quit(ctx)
	}
	_, err := x.system.StartReplica(ctx)
	return how, err
}

// judge reads what engines and clients wrote down.
func (x *chaos) judge(c local.Config) error {
	engines, err := execlog.ReadFiles(x.system.ExecutionLogs())
	if err != nil {
		return err
	}
	clients, err := execlog.ReadClientFiles(x.log)
	if err != nil {
		return err
	}
	// After a take-over a session may find another home: the new leader knows only what is presented.
	run := verdict.Run{Engines: engines, Clients: clients, Disturbed: x.system.EngineNames(), Senders: map[string]string{}}
	for _, session := range x.player.Sessions() {
		run.Sessions = append(run.Sessions, session.Session)
		run.Senders[session.ID] = session.Sender
	}
	if faults := run.Faults(); len(faults) > 0 {
		return fmt.Errorf("%d faults:\n%s", len(faults), strings.Join(faults, "\n"))
	}
	c.Say(fmt.Sprintf("%d executions, no turn twice, every count at zero", len(engines)))
	return nil
}
