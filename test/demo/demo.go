package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traffic"
	"github.com/berthmaster/berthmaster/test/verdict"
)

const (
	// progressPeriod is how often the traffic's progress is shown.
	progressPeriod = 5 * time.Second
	// evalEvery makes every so many sessions one of the sender eval.
	evalEvery = 8
)

// demo is one showing.
type demo struct {
	options options
	stage   *stage

	sessions []workload.Session
	system   *local.System
	player   *traffic.Player
	story    *story.Story
	backends []verdict.Backend
}

// senderOf gives the sender of the i-th session.
func senderOf(i int) string {
	if i%evalEvery == evalEvery-1 {
		return "eval"
	}
	return "train"
}

// hold brings the system up with its pool and leaves it until ctx ends.
func (d *demo) hold(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	defer d.system.Close()
	d.stage.say("leases are at " + d.system.PoolURL())
	d.stage.say("kubectl: " + filepath.Join(d.options.assets, "kubectl") + " --kubeconfig " + d.system.Kubectl().Kubeconfig())
	d.stage.say("Ctrl-C ends it")
	select {
	case <-ctx.Done():
		return nil
	case err := <-d.system.Broken():
		return err
	}
}

// show plays the whole piece and judges it.
func (d *demo) show(ctx context.Context) (err error) {
	if d.sessions, err = d.options.sessions(); err != nil {
		return err
	}
	d.stage.say(fmt.Sprintf("workload: %d requests in %d sessions", workload.Requests(d.sessions), len(d.sessions)))
	if err := d.open(ctx); err != nil {
		return err
	}
	played := d.play(ctx)
	d.stage.say("stopping; logs stay in " + d.options.work)
	d.system.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	expected := d.sessions
	if played != nil {
		expected = nil // a run that broke off has not made all of its turns
	}
	return errors.Join(played, d.judge(expected))
}

// open starts the system, applies the sample and waits until every engine
// serves.
func (d *demo) open(ctx context.Context) (err error) {
	c, err := d.options.local(d.stage.say)
	if err != nil {
		return err
	}
	if d.system, err = local.Start(ctx, c); err != nil {
		return err
	}
	if err := d.apply(ctx); err != nil {
		d.system.Close()
		return err
	}
	return nil
}

func (d *demo) apply(ctx context.Context) error {
	d.stage.say("kubectl apply --server-side -f " + local.Sample)
	if err := d.system.ApplySample(ctx); err != nil {
		return err
	}
	if err := d.system.Until(ctx, "every engine to serve", story.AllServe(d.options.engines)); err != nil {
		return err
	}
	shown, err := d.system.Show(ctx)
	if err != nil {
		return err
	}
	d.stage.show("$ kubectl get inferencepools.inference.berthmaster.io\n" + shown)
	pool, err := d.system.Pool(ctx)
	if err != nil {
		return err
	}
	for _, b := range pool.Status.Backends {
		d.backends = append(d.backends, verdict.Backend{Name: b.Name, Capacity: b.Capacity})
	}
	return nil
}

// play lets the traffic flow and tells the story meanwhile. It ends early when
// either fails, or a process of the system ends by itself.
func (d *demo) play(ctx context.Context) (err error) {
	log, err := execlog.Open(d.clientLog(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	pool, err := client.New(client.Config{BaseURL: d.system.PoolURL()})
	if err != nil {
		return err
	}
	defer pool.Close()
	d.player, err = traffic.New(traffic.Config{
		Pool: pool, Sessions: d.sessions, Sender: senderOf, Epoch: 1,
		Speed: d.options.speed, Log: log, Plant: traffic.Plant(d.options.plant),
	})
	if err != nil {
		return err
	}
	if err := d.perform(ctx); err != nil || d.options.plant != "" {
		return err // what a planted client has cut may stay counted, since nothing waits for it
	}
	return d.system.UntilNothingCounted(ctx)
}

// perform runs traffic, story, progress and the watch over the processes side by
// side and returns once traffic and story have ended.
func (d *demo) perform(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	over := make(chan struct{})
	go func() {
		select {
		case err := <-d.system.Broken():
			fail(err)
		case <-over:
		}
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		if err := d.tell(ctx); err != nil {
			fail(err)
		}
	}()
	go d.progress(over)
	if err := d.player.Run(ctx); err != nil {
		fail(err)
	}
	<-told
	close(over)
	return context.Cause(ctx) // the first failure, if there was one
}

// tell waits for the traffic to be under way and tells the story.
func (d *demo) tell(ctx context.Context) error {
	d.story = &story.Story{System: d.system, Traffic: briefly{d.player, d.stage}, Say: d.stage.say, Now: time.Now}
	if err := d.story.Begin(ctx); err != nil {
		return err
	}
	total := workload.Requests(d.sessions)
	drained, killed := d.disturbed()[0], d.disturbed()[1]
	for _, part := range []func() error{
		func() error { return d.player.AwaitDone(ctx, total/10) },
		func() error { return d.story.Drain(ctx, drained) },
		func() error { return d.story.Fence(ctx, "eval", "train") },
		func() error { return d.story.Crash(ctx, killed) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// disturbed names the backend that is drained and the one that is killed.
func (d *demo) disturbed() []string {
	names := d.system.EngineNames()
	return []string{names[1], names[len(names)-1]}
}

func (d *demo) clientLog() string { return filepath.Join(d.options.work, "clients.jsonl") }
