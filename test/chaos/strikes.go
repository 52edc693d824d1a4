package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/test/local"
)

// kind is one thing that can happen to managers.
type kind struct {
	name string
	next succession
	// strike does it, and returns what puts right what does not end by itself; nil: nothing does.
	strike func(*chaos, context.Context, *local.Replica) (mend func(context.Context) error, err error)
}

// succession says who leads after it.
type succession int

const (
	// anotherLeads: a take-over follows.
	anotherLeads succession = iota
	// anyoneLeads: the same replica may go on.
	anyoneLeads
)

// kinds are all of them, those of few rounds first.
func kinds() []kind {
	return []kind{
		{"the leader was killed", anotherLeads, (*chaos).kill},
		{"the leader stood still", anotherLeads, (*chaos).freeze},
		{"the leader ended cleanly", anotherLeads, (*chaos).quit},
		{"the leader lost the API server", anotherLeads, (*chaos).partition},
		{"the status was wiped and the leader killed", anotherLeads, (*chaos).wipe},
		{"the API server took 2 s for each answer and the leader was killed", anotherLeads, (*chaos).slow},
		{"nobody reached the API server", anyoneLeads, (*chaos).outage},
		{"two managers started at once, for the first time", anyoneLeads, nil},
		{"the leader was killed in a rollout all at once", anotherLeads, inRollout("AllAtOnce")},
		{"the leader was killed in a rolling rollout", anotherLeads, inRollout("Rolling")},
		{"the leader was killed in a rollout in place", anotherLeads, inRollout("InPlace")},
	}
}

func (x *chaos) kill(ctx context.Context, leader *local.Replica) (func(context.Context) error, error) {
	leader.Kill()
	_, err := x.system.StartReplica(ctx)
	return nil, err
}

func (x *chaos) quit(ctx context.Context, leader *local.Replica) (func(context.Context) error, error) {
	leader.Quit(ctx)
	_, err := x.system.StartReplica(ctx)
	return nil, err
}

// freeze stops the leader and lets calls queue up before it. When it goes on, they are the first
// thing that it sees, before it can know that another leads.
func (x *chaos) freeze(ctx context.Context, leader *local.Replica) (func(context.Context) error, error) {
	if err := leader.Freeze(); err != nil {
		return nil, err
	}
	queue, err := x.waitBefore(ctx, leader)
	if err != nil {
		return nil, errors.Join(err, leader.Thaw())
	}
	return func(ctx context.Context) error {
		thawed := time.Now()
		if err := leader.Thaw(); err != nil {
			return err
		}
		return queue.collect(ctx, thawed)
	}, nil
}

func (x *chaos) partition(_ context.Context, leader *local.Replica) (func(context.Context) error, error) {
	leader.Link.Cut()
	return func(context.Context) error {
		leader.Link.Heal()
		return nil
	}, nil
}

// wipe takes the status away while nobody can put it back, and then the leader.
func (x *chaos) wipe(ctx context.Context, leader *local.Replica) (func(context.Context) error, error) {
	before, err := x.system.Pool(ctx)
	if err != nil {
		return nil, err
	}
	if err := leader.Freeze(); err != nil {
		return nil, err
	}
	if err := x.system.WipeStatus(ctx); err != nil {
		return nil, errors.Join(err, leader.Thaw())
	}
	leader.Kill()
	if _, err = x.system.StartReplica(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		after, err := x.system.Pool(ctx)
		if err == nil && after.Status.Term <= before.Status.Term {
			err = fmt.Errorf("term %d follows term %d", after.Status.Term, before.Status.Term)
		}
		return err
	}, nil
}

// slowness is how much later the answers of a slow API server come.
const slowness = 2 * time.Second

// slow makes the API server slow for everybody; grants go on, and then the leader is killed.
func (x *chaos) slow(ctx context.Context, leader *local.Replica) (func(context.Context) error, error) {
	x.everybody(func(l *local.Link) { l.Slow(slowness) })
	if err := x.more(ctx, 20); err != nil {
		return nil, err
	}
	leader.Kill()
	next, err := x.system.StartReplica(ctx)
	if err != nil {
		return nil, err
	}
	next.Link.Slow(slowness)
	return func(context.Context) error {
		x.everybody(func(l *local.Link) { l.Slow(0) })
		return nil
	}, nil
}

func (x *chaos) everybody(do func(*local.Link)) {
	for _, r := range x.system.Replicas() {
		do(r.Link)
	}
}

// renewDeadline is the managers' default.
const renewDeadline = 7 * time.Second

// outage takes the API server away from everybody until no lease is granted any more, which has to
// be so once the renew deadline is over, and gives it back.
func (x *chaos) outage(ctx context.Context, _ *local.Replica) (func(context.Context) error, error) {
	x.everybody((*local.Link).Cut)
	cut := time.Now()
	if err := x.untilNoLeader(ctx); err != nil {
		return nil, err
	}
	if n := x.grants.after(cut.Add(renewDeadline)); n > 0 {
		return nil, fmt.Errorf("%d leases were granted later than the renew deadline", n)
	}
	x.everybody((*local.Link).Heal)
	return nil, nil
}

// beginAnew replaces both managers, and all that they have left, by two that start at once and find
// nothing. No traffic may run.
func (x *chaos) beginAnew(ctx context.Context) error {
	if err := x.system.DeletePool(ctx); err != nil {
		return err
	}
	old := x.system.Replicas()
	for _, r := range old {
		r.Quit(ctx)
	}
	if err := x.system.ForgetReplicas(ctx); err != nil {
		return err
	}
	x.grants.restart()
	for range old {
		if _, err := x.system.StartReplica(ctx); err != nil {
			return err
		}
	}
	return x.openPool(ctx)
}
