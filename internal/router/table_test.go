package router_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// Table under concurrent callers: linearizability against a model of one request id, and the
// order of clocks.

// step is what a client does with one request id.
type step uint8

const (
	stepAcquire step = iota
	stepRenew
	stepSucceed
	stepCancel
)

// saw is what the client was answered; rid is set where a lease was.
type saw struct {
	reason router.Reason
	rid    router.RID
}

// leaseModel is one request id by the protocol: nothing, a lease, or an outcome.
type leaseModel struct {
	rid     router.RID
	outcome router.Outcome
}

// model is what a single-threaded router would answer; histories are split by request id.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byID := map[int][]porcupine.Operation{}
			for _, op := range history {
				id := op.Input.(asked).id
				byID[id] = append(byID[id], op)
			}
			var out [][]porcupine.Operation
			for _, ops := range byID {
				out = append(out, ops)
			}
			return out
		},
		Init: func() any { return leaseModel{} },
		Step: func(state, input, output any) (bool, any) {
			return next(state.(leaseModel), input.(asked).do, output.(saw))
		},
	}
}

// asked is one call of a client.
type asked struct {
	id int
	do step
}

// next is the model's answer to one step, and its state after it.
func next(m leaseModel, do step, got saw) (bool, any) {
	switch do {
	case stepAcquire:
		switch {
		case m.outcome != "":
			return got.reason == router.ReasonLeaseEnded, m
		case m.rid == "":
			return got.reason == "" && got.rid != "", leaseModel{rid: got.rid}
		default:
			return got == saw{rid: m.rid}, m
		}
	case stepRenew:
		if m.outcome != "" {
			return got.reason == router.ReasonLeaseEnded, m
		}
		return got == saw{rid: m.rid}, m
	case stepSucceed:
		return m.end(router.Succeeded, got)
	case stepCancel:
		return m.end(router.Cancelled, got)
	}
	return false, m
}

func (m leaseModel) end(o router.Outcome, got saw) (bool, any) {
	if m.outcome != "" && m.outcome != o {
		return got.reason == router.ReasonRequestConflict, m
	}
	m.outcome = o
	return got.reason == "", m
}

func TestTableIsLinearizable(t *testing.T) {
	for seed := range uint64(20) {
		p := routertest.New(t, routertest.Backends("a", "b", "c"))
		h := &history{p: p}
		var all sync.WaitGroup
		for client := range 6 {
			all.Go(func() { h.run(client, rand.New(rand.NewPCG(seed, uint64(client)))) })
		}
		all.Wait()
		if res := porcupine.CheckOperationsTimeout(model(), h.ops, time.Minute); res != porcupine.Ok {
			t.Fatalf("seed %d: the history of %d operations is %v", seed, len(h.ops), res)
		}
	}
}

func TestTheModelRefusesASecondLeaseOfOneID(t *testing.T) {
	twice := []porcupine.Operation{
		{ClientId: 0, Input: asked{1, stepAcquire}, Output: saw{rid: "x"}, Call: 1, Return: 2},
		{ClientId: 1, Input: asked{1, stepAcquire}, Output: saw{rid: "y"}, Call: 3, Return: 4},
	}
	if porcupine.CheckOperations(model(), twice) {
		t.Error("a history with two leases of one id passes")
	}
}

// history collects what concurrent clients asked and saw.
type history struct {
	p  *routertest.Pool
	mu sync.Mutex
	// clock orders calls and returns.
	clock int64
	ops   []porcupine.Operation
}

func (h *history) tick() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	return h.clock
}

// run does random steps with the ids that all clients share; it renews and releases under the
// token of its own acquire.
func (h *history) run(client int, chance *rand.Rand) {
	tokens := map[int]router.Claim{}
	for range 60 {
		id, do := chance.IntN(12), step(chance.IntN(4))
		if _, held := tokens[id]; !held {
			do = stepAcquire
		}
		called := h.tick()
		got := h.do(id, do, tokens)
		returned := h.tick()
		h.mu.Lock()
		h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: asked{id, do}, Output: got, Call: called, Return: returned})
		h.mu.Unlock()
	}
}

func (h *history) do(id int, do step, tokens map[int]router.Claim) saw {
	var err error
	var rid router.RID
	now := h.p.Now()
	switch do {
	case stepAcquire:
		var g router.Grant
		name := fmt.Sprint("r", id)
		g, err = h.p.Table.Acquire(h.p.Request(router.RequestID(name), router.SessionID(name)), now)
		if err == nil {
			tokens[id], rid = g.Claim, g.Claim.RID
		}
	case stepRenew:
		_, err = h.p.Table.Renew(tokens[id], router.Started, now)
		rid = tokens[id].RID
	case stepSucceed:
		_, err = h.p.Table.Release(tokens[id], router.Succeeded, router.Reply{}, now)
	case stepCancel:
		_, err = h.p.Table.Release(tokens[id], router.Cancelled, router.Reply{}, now)
	}
	var r *router.Refusal
	if errors.As(err, &r) {
		return saw{reason: r.Reason}
	}
	return saw{rid: rid}
}

func TestClocksReadBeforeTheLockMayArriveOutOfOrder(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	first, second := p.Acquire("r1", "s1"), p.Acquire("r2", "s2")
	late := p.Now().Add(time.Second)
	p.Pass(2 * time.Second)
	p.Release(first, router.Succeeded)
	if _, err := p.Table.Release(second.Claim, router.Succeeded, router.Reply{}, late); err != nil {
		t.Fatal(err)
	}
	p.Pass(p.Fleet.Config.Retention)
	if n := p.Snapshot().Requests; n != 0 {
		t.Errorf("%d records are kept beyond the retention time", n)
	}
}

func TestManyClientsLeaveEveryCountAtZero(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c", "d"), routertest.Capacities(4, 4, 4, 4), routertest.With(func(c *router.Config) {
		c.AdmissionPercent = 100
	}))
	var all sync.WaitGroup
	for client := range 32 {
		all.Go(func() { sessionsOf(t, p, client, rand.New(rand.NewPCG(1, uint64(client)))) })
	}
	all.Wait()
	p.Settle(10 * time.Second)
	s := p.Snapshot()
	for _, b := range s.Backends {
		if b.Outstanding != 0 || b.Sessions != 0 {
			t.Errorf("%s: %d outstanding, %d sessions", b.Name, b.Outstanding, b.Sessions)
		}
	}
	if s.Waiting != 0 {
		t.Errorf("%d wait", s.Waiting)
	}
}

// sessionsOf runs turns that wait for their leases, a tenth of which hang up at once.
func sessionsOf(t *testing.T, p *routertest.Pool, client int, chance *rand.Rand) {
	for i := range 50 {
		session := router.SessionID(fmt.Sprint("s", client))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if chance.IntN(10) == 0 {
			cancel()
		}
		g, err := p.Table.AcquireWait(ctx, p.Request(router.RequestID(fmt.Sprint(client, "-", i)), session), p.Now)
		cancel()
		if err != nil {
			if ctx.Err() == nil || !errors.Is(err, router.ErrContended) {
				t.Errorf("client %d: %v", client, err)
			}
			continue
		}
		if _, err := p.Table.Release(g.Claim, router.Succeeded, router.Reply{}, p.Now()); err != nil {
			t.Errorf("client %d: %v", client, err)
		}
	}
	if err := p.Table.EndSession(router.SessionID(fmt.Sprint("s", client)), "train", p.Now()); err != nil {
		t.Errorf("client %d: %v", client, err)
	}
}
