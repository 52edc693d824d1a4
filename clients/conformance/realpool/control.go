package realpool

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
)

// patience bounds the waits for a pool that serves, and for one in which nothing is counted.
const patience = time.Minute

// Change is what the pool's spec would say otherwise; empty members leave things as they are.
type Change struct {
	// Access is that of the sender train.
	Access router.Access `json:"access"`
	// Leasing is the pool's.
	Leasing router.Leasing `json:"leasing"`
	// Epoch is the pool's, which may only grow.
	Epoch router.Epoch `json:"epoch"`
}

// Apply changes the pool.
func (h *House) Apply(c Change) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Access != "" {
		h.fleet.Senders = []router.Sender{{Name: "train", Access: c.Access}}
	}
	if c.Leasing != "" {
		h.fleet.Leasing = c.Leasing
	}
	h.fleet.Epoch = max(h.fleet.Epoch, c.Epoch)
	if err := h.table.Apply(h.fleet, time.Now()); err != nil {
		return fmt.Errorf("change the pool: %w", err)
	}
	return nil
}

// Counts is what the router has on its books, and the engines in their logs.
type Counts struct {
	// Outstanding is how many executions are counted.
	Outstanding int64 `json:"outstanding"`
	// Sessions is how many sessions are known.
	Sessions int `json:"sessions"`
	// Started is how many executions engines have begun so far.
	Started int `json:"started"`
}

// Counted is what the router that reigns counts now.
func (h *House) Counted() Counts {
	snapshot := h.reigning().Snapshot(time.Now())
	c := Counts{Sessions: snapshot.Sessions}
	for _, b := range snapshot.Backends {
		c.Outstanding += b.Outstanding
	}
	for _, r := range h.Records() {
		if r.Event == execlog.Start {
			c.Started++
		}
	}
	return c
}

// Verdict is what the engines executed, and whether they might have.
type Verdict struct {
	// Turns is how many turns there were, Executions how many sequences they took.
	Turns      int `json:"turns"`
	Executions int `json:"executions"`
	// Violations are executions that nothing allowed, and counts that did not come down.
	Violations []string `json:"violations"`
}

// Verdict waits until the router counts nothing, and judges the engines' logs; told is the client's
// own, which allows a turn to be executed again.
func (h *House) Verdict(ctx context.Context, told []execlog.ClientRecord) Verdict {
	v := Verdict{Violations: []string{}}
	if !h.emptied(ctx) {
		v.Violations = append(v.Violations, fmt.Sprintf("counted are still: %+v", h.Counted()))
	}
	report := execlog.Check(h.Records(), told)
	v.Turns = len(report.Turns)
	for _, turn := range report.Turns {
		v.Executions += len(turn.Executions)
	}
	for _, violation := range report.Violations {
		v.Violations = append(v.Violations, violation.String())
	}
	return v
}

// emptied waits until the router counts nothing; false if it goes on counting.
func (h *House) emptied(ctx context.Context) bool {
	return h.until(ctx, func(s router.Snapshot) bool {
		return !slices.ContainsFunc(s.Backends, func(b router.BackendSnapshot) bool { return b.Outstanding > 0 })
	})
}

// serving waits until every engine may be leased: who asks before that finds only the first ones.
func (h *House) serving(ctx context.Context) bool {
	return h.until(ctx, func(s router.Snapshot) bool {
		return !slices.ContainsFunc(s.Backends, func(b router.BackendSnapshot) bool { return !b.Admissible })
	})
}

// until waits for something of the router that reigns; false if it does not come.
func (h *House) until(ctx context.Context, holds func(router.Snapshot) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds(h.reigning().Snapshot(time.Now())) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// records is the execution log of all engines.
type records struct {
	mu  sync.Mutex
	all []execlog.Record // guarded by mu
}

// Append takes a line of an engine's log.
func (r *records) Append(record any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record.(execlog.Record))
	return nil
}

// Records are what the engines have logged so far.
func (h *House) Records() []execlog.Record {
	h.records.mu.Lock()
	defer h.records.mu.Unlock()
	return append([]execlog.Record(nil), h.records.all...)
}
