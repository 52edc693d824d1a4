package routertest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// began is when every pool of this package begins.
var began = time.Unix(1_700_000_000, 0)

// Pool is a table with its fleet and its clock. It leads term 1, has the sender "train" and one
// backend per name given, each of capacity 8, healthy, in incarnation "NAME/1".
type Pool struct {
	Table *router.Table
	// Fleet is what was applied last; change it through Change.
	Fleet router.Fleet

	t     testing.TB
	now   time.Time
	term  router.Term
	seqs  map[router.Incarnation]uint64
	clock float64
}

// Option changes a fleet before it is first applied.
type Option func(*router.Fleet)

// With changes the configuration.
func With(change func(*router.Config)) Option {
	return func(f *router.Fleet) { change(&f.Config) }
}

// Capacities fixes the capacities of the backends, in their order.
func Capacities(of ...int64) Option {
	return func(f *router.Fleet) {
		for i, n := range of {
			f.Members[i].Capacity = n
		}
	}
}

// Senders replaces the senders; all are open.
func Senders(names ...router.SenderName) Option {
	return func(f *router.Fleet) {
		f.Senders = nil
		for _, n := range names {
			f.Senders = append(f.Senders, router.Sender{Name: n, Access: router.AccessOpen})
		}
	}
}

// Backends is a fleet of one backend per name; give it to New.
func Backends(names ...router.BackendName) router.Fleet {
	f := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	for _, n := range names {
		f.Members = append(f.Members, Member(n, 1))
	}
	return f
}

// Member is a backend of capacity 8 in its nth life.
func Member(name router.BackendName, life int) router.Member {
	return router.Member{Name: name, Incarnation: Incarnation(name, life), URL: "http://" + string(name), Capacity: 8}
}

// Incarnation names the nth life of a backend.
func Incarnation(name router.BackendName, life int) router.Incarnation {
	return router.Incarnation(fmt.Sprint(name, "/", life))
}

// New makes the pool of a fleet; everything in it is healthy.
func New(t testing.TB, f router.Fleet, options ...Option) *Pool {
	t.Helper()
	for _, o := range options {
		o(&f)
	}
	p := &Pool{Fleet: f, t: t, now: began, seqs: map[router.Incarnation]uint64{}}
	p.begin(router.Takeover{})
	p.HealAll()
	return p
}

func (p *Pool) begin(past router.Takeover) {
	p.t.Helper()
	p.term++
	p.Table = router.NewTable("pool", nil, p.now)
	p.Table.Lead(p.term, past, p.now)
	p.apply()
}

func (p *Pool) apply() {
	p.t.Helper()
	if err := p.Table.Apply(p.Fleet, p.now); err != nil {
		p.t.Fatalf("apply: %v", err)
	}
}

// TakeOver makes another process the leader: it knows the fleet, on which anything may run, and
// that earlier terms granted under the given start windows. All is healthy.
func (p *Pool) TakeOver(windows time.Duration) {
	p.t.Helper()
	p.TakeOverBlind(windows)
	p.HealAll()
}

// TakeOverBlind is TakeOver by a leader that has not looked at any backend yet.
func (p *Pool) TakeOverBlind(windows time.Duration) {
	p.t.Helper()
	p.Fleet.Members = slices.Clone(p.Fleet.Members)
	for i := range p.Fleet.Members {
		p.Fleet.Members[i].Load = router.LoadUnknown
	}
	p.begin(router.Takeover{Windows: windows})
}

// Change changes the fleet and applies it.
func (p *Pool) Change(change func(*router.Fleet)) {
	p.t.Helper()
	p.Fleet.Members, p.Fleet.Senders = slices.Clone(p.Fleet.Members), slices.Clone(p.Fleet.Senders)
	change(&p.Fleet)
	p.apply()
}

// Now is the pool's time.
func (p *Pool) Now() time.Time { return p.now }

// Pass lets time go by.
func (p *Pool) Pass(d time.Duration) {
	p.now = p.now.Add(d)
	p.Table.Tick(p.now)
}

// HealAll reports every member healthy.
func (p *Pool) HealAll() {
	for _, m := range p.Fleet.Members {
		p.Observe(m.Incarnation, router.Healthy)
	}
}

// Observe reports the health of one incarnation, confirmed on the published version.
func (p *Pool) Observe(inc router.Incarnation, h router.Health) {
	p.See(router.Observation{Incarnation: inc, Health: h, Version: p.Fleet.Published, EngineTotal: -1})
}

// See reports an observation, newer than the last of its incarnation.
func (p *Pool) See(o router.Observation) {
	p.seqs[o.Incarnation]++
	o.Seq = p.seqs[o.Incarnation]
	p.Table.Observe(o, p.now)
}

// Request is the request of that id and session for one execution, by the sender "train".
func (p *Pool) Request(id router.RequestID, session router.SessionID) router.Request {
	return router.Request{ID: id, Session: session, Sender: "train", Epoch: p.Fleet.Epoch, Executions: 1}
}

// Acquire gets a lease or ends the test.
func (p *Pool) Acquire(id router.RequestID, session router.SessionID) router.Grant {
	p.t.Helper()
	return p.Grant(p.Request(id, session))
}

// Grant gets the lease of a request or ends the test.
func (p *Pool) Grant(r router.Request) router.Grant {
	p.t.Helper()
	g, err := p.Table.Acquire(r, p.now)
	if err != nil {
		p.t.Fatalf("acquire %s: %v", r.ID, err)
	}
	return g
}

// Refuse demands that a request is refused for a reason, and returns the refusal.
func (p *Pool) Refuse(r router.Request, want error) *router.Refusal {
	p.t.Helper()
	g, err := p.Table.Acquire(r, p.now)
	return p.refusal(g, err, want)
}

func (p *Pool) refusal(got any, err, want error) *router.Refusal {
	p.t.Helper()
	var r *router.Refusal
	if !errors.Is(err, want) || !errors.As(err, &r) {
		p.t.Fatalf("got %+v, %v, want a refusal: %v", got, err, want)
	}
	return r
}

// Renew extends a lease or ends the test.
func (p *Pool) Renew(g router.Grant, begun router.Start) router.Renewal {
	p.t.Helper()
	r, err := p.Table.Renew(g.Claim, begun, p.now)
	if err != nil {
		p.t.Fatalf("renew %s: %v", g.Claim.Request, err)
	}
	return r
}

// RefuseRenewal demands that a renewal is refused for a reason.
func (p *Pool) RefuseRenewal(g router.Grant, want error) *router.Refusal {
	p.t.Helper()
	r, err := p.Table.Renew(g.Claim, router.NotStarted, p.now)
	return p.refusal(r, err, want)
}

// Release ends a lease or the test.
func (p *Pool) Release(g router.Grant, o router.Outcome) router.Ending {
	p.t.Helper()
	e, err := p.Table.Release(g.Claim, o, router.Reply{}, p.now)
	if err != nil {
		p.t.Fatalf("release %s as %s: %v", g.Claim.Request, o, err)
	}
	return e
}

// RefuseRelease demands that a release is refused for a reason.
func (p *Pool) RefuseRelease(g router.Grant, o router.Outcome, want error) *router.Refusal {
	p.t.Helper()
	e, err := p.Table.Release(g.Claim, o, router.Reply{}, p.now)
	return p.refusal(e, err, want)
}
