package main

import (
	"context"
	"sync"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/berthmaster/berthmaster/internal/controller"
	"github.com/berthmaster/berthmaster/internal/election"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// replica is this manager among others.
type replica struct {
	clients   kubernetes.Interface
	candidate *election.Candidate // nil: there is no election
}

func newReplica(clients kubernetes.Interface, o *options, reconciler *controller.Reconciler) (*replica, error) {
	if !o.election.elect {
		return &replica{clients: clients}, nil
	}
	candidate, err := newCandidate(clients, o, reconciler)
	return &replica{clients: clients, candidate: candidate}, err
}

// leadership is what the lease API asks; nil: it always answers.
func (r *replica) leadership() server.Leadership {
	if r.candidate == nil {
		return nil
	}
	return leadership{candidate: r.candidate, self: r.candidate.Identity()}
}

// run runs the manager until ctx ends. This replica stands for election once its caches are filled,
// and gives leadership up after its own calls have been answered.
func (r *replica) run(ctx context.Context, manager ctrl.Manager, beside func(context.Context)) error {
	standing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { beside(standing) })
	work.Go(func() {
		select {
		case <-manager.Elected(): // its own election, which is off, is over once its caches are filled
		case <-standing.Done():
			return
		}
		if r.candidate != nil {
			r.candidate.Run(standing)
		}
	})
	return manager.Start(ctx)
}
