package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/test/local"
)

// away is for how long the one manager does without the API server: longer than any lease of an
// election.
const away = 20 * time.Second

// alone takes the API server away from a manager that needs no election. Leases go on all the
// while, under the same term, and the status catches up afterwards.
func alone(ctx context.Context, c local.Config, seed uint64) error {
	c.Replicas, c.ReplicaFlags = 1, []string{"--leader-elect=false"}
	x, err := start(ctx, c, seed)
	if err != nil {
		return err
	}
	defer x.system.Close()
	ctx, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	if err := x.underTraffic(ctx, 0, x.withoutServer); err != nil {
		return err
	}
	if err := x.system.UntilNothingCounted(ctx); err != nil {
		return err
	}
	told, err := x.judge()
	if err == nil && x.grants.terms() != 1 {
		err = fmt.Errorf("%d terms, want the one of before", x.grants.terms())
	}
	if err == nil {
		x.say("one manager, " + away.String() + " without the API server: leases went on, the status caught up; " + told)
	}
	return err
}

// leasesGoOn sees more and more leases granted until so much time is over.
func (x *chaos) leasesGoOn(ctx context.Context, until time.Duration) error {
	long := time.NewTimer(until)
	defer long.Stop()
	for {
		if err := x.more(ctx, 20); err != nil {
			return err
		}
		select {
		case <-long.C:
			return nil
		default:
		}
	}
}

// withoutServer cuts the manager off, changes the spec meanwhile, and sees it obeyed afterwards.
func (x *chaos) withoutServer(ctx context.Context) error {
	if err := x.more(ctx, 10); err != nil {
		return err
	}
	link := x.system.Replicas()[0].Link
	link.Cut()
	if err := x.leasesGoOn(ctx, away); err != nil {
		return err
	}
	if err := x.system.SetAccess(ctx, "eval", v1alpha1.SenderFenced); err != nil {
		return err
	}
	if pool, err := x.system.Pool(ctx); err != nil || pool.Status.ObservedGeneration == pool.Generation {
		return errors.Join(err, errors.New("the manager was not cut off: it has seen the new spec"))
	}
	if err := x.more(ctx, 20); err != nil {
		return err
	}
	link.Heal()
	return x.system.Until(ctx, "the status to catch up", func(pool *v1alpha1.InferencePool) error {
		for _, sender := range pool.Status.Senders {
			if sender.Name == "eval" && sender.Access == v1alpha1.SenderStateFenced {
				return nil
			}
		}
		return errors.New("eval is not Fenced")
	})
}
