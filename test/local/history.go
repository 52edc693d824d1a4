package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// History is every version of the pool that the API server told of, so that a
// state which lasted for less than a look is not missed.
type History struct {
	mu    sync.Mutex
	pools []*v1alpha1.InferencePool // guarded by mu
	heard []time.Time               // guarded by mu; when each of pools was
	more  chan struct{}             // guarded by mu; closed and replaced when pools grows
	err   error                     // guarded by mu; set once, when the watch has ended
}

// Record watches the pool from now on, until ctx ends.
func (s *System) Record(ctx context.Context) (*History, error) {
	events, err := s.pools.watcher.Watch(ctx, &v1alpha1.InferencePoolList{}, &client.ListOptions{
		Namespace:     s.sample.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", s.sample.Name),
	})
	if err != nil {
		return nil, fmt.Errorf("watch of the pool: %w", err)
	}
	h := &History{more: make(chan struct{})}
	go h.record(events)
	return h, nil
}

func (h *History) record(events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		if pool, ok := event.Object.(*v1alpha1.InferencePool); ok {
			h.mu.Lock()
			h.pools, h.heard = append(h.pools, pool), append(h.heard, time.Now())
			close(h.more)
			h.more = make(chan struct{})
			h.mu.Unlock()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = errors.New("the watch of the pool has ended")
	close(h.more)
	h.more = make(chan struct{})
}

// Seen is a version of the pool, and when it was heard of.
type Seen struct {
	At   time.Time
	Pool *v1alpha1.InferencePool
}

// All returns what is recorded so far.
func (h *History) All() []Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Seen, len(h.pools))
	for i := range h.pools {
		out[i] = Seen{h.heard[i], h.pools[i]}
	}
	return out
}

// Mark is a place in a History.
type Mark int

// Now marks the end of what is recorded so far.
func (h *History) Now() Mark {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Mark(len(h.pools))
}

// After returns the mark behind the first version, from the given mark on, with
// which look finds nothing wrong. It waits for one as long as the status may
// take; look's last complaint is in the error.
func (h *History) After(ctx context.Context, from Mark, what string, look func(*v1alpha1.InferencePool) error) (Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	last := errors.New("no later version of the pool")
	for {
		pools, more, ended := h.since(from)
		for _, pool := range pools {
			from++
			if last = look(pool); last == nil {
				return from, nil
			}
		}
		if ended != nil {
			return from, fmt.Errorf("waiting for %s: %w", what, ended)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return from, fmt.Errorf("waiting for %s: %w; at last: %w", what, context.Cause(ctx), last)
		}
	}
}

func (h *History) since(from Mark) ([]*v1alpha1.InferencePool, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if int(from) < len(h.pools) {
		return h.pools[from:], h.more, nil
	}
	return nil, h.more, h.err
}
