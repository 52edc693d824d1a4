package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// executions is an execution log in memory.
type executions struct {
	mu      sync.Mutex
	records []execlog.Record // guarded by mu
}

// Append keeps an engine's record.
func (e *executions) Append(record any) error {
	r, ok := record.(execlog.Record)
	if !ok {
		return errors.New("not an engine's record")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records = append(e.records, r)
	return nil
}

func (e *executions) report() execlog.Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return execlog.Check(e.records, nil)
}

// What every client sends: so many turns to the steady pool, of which one has two samples and one
// is cancelled, and one turn to the broken pool.
const (
	steadyTurns = 7
	brokenTurns = 1
)

// judge holds the engines' logs against what a client sends.
func (h *house) judge(ctx context.Context) error {
	var faults []error
	for pool, want := range map[string]int{steadyPool: steadyTurns, brokenPool: brokenTurns} {
		report := h.logs[pool].report()
		for _, v := range report.Violations {
			faults = append(faults, fmt.Errorf("executed twice: %s", v))
		}
		if len(report.Turns) != want {
			faults = append(faults, fmt.Errorf("%s: %d turns executed, want %d", pool, len(report.Turns), want))
		}
		if err := h.awaitNothingCounted(ctx, pool); err != nil {
			faults = append(faults, err)
		}
		fmt.Printf("  %s: %d turns, outcomes %s\n", pool, len(report.Turns), h.outcomes(pool))
	}
	return errors.Join(faults...)
}

// awaitNothingCounted fences the sender and waits until nothing is counted: what a client left
// behind is aborted, and then proven gone.
func (h *house) awaitNothingCounted(ctx context.Context, pool string) error {
	if err := h.apply(pool, func(f *router.Fleet) { f.Senders[0].Access = router.AccessFenced }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for h.counted(pool) > 0 {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %d still counted", pool, h.counted(pool))
		}
	}
	return nil
}

// settle asks the engines what the table wants to know, as the manager's settler does.
func settle(ctx context.Context, table *router.Table) {
	transport := sglang.NewTransport()
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		if f := table.Snapshot(time.Now()).Failure; f != nil && !f.Recorded {
			table.FailureRecorded(f.Request, time.Now()) // in place of the controller, who writes it to status
		}
		for _, c := range table.Chores(time.Now()) {
			if base, err := sglang.ParseBaseURL(c.URL); err == nil {
				do(ctx, table, sglang.New(base, transport, nil), c)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func do(ctx context.Context, table *router.Table, engine *sglang.Client, c router.Chore) {
	var answered []router.RID
	for _, rid := range c.Abort {
		if engine.AbortRequest(ctx, string(rid)) == nil {
			answered = append(answered, rid)
		}
	}
	table.AbortAnswered(c.Incarnation, answered, time.Now())
	if !c.ReadLoads {
		return
	}
	loads, err := engine.Loads(ctx)
	if err != nil {
		return
	}
	var ranks []router.RankLoad
	for _, l := range loads {
		ranks = append(ranks, router.RankLoad{Rank: l.Rank, Clock: l.Timestamp, Total: l.Total()})
	}
	table.LoadsRead(c.Incarnation, c.Stamp, ranks, time.Now())
}
