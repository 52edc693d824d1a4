package fakepool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// RouterToken and EngineKey are the bearer token that a client has to show to the router, and the
// api-key that it has to show to engines.
const (
	RouterToken = "token-for-the-router"
	EngineKey   = "key-for-the-engines"
)

// Pool is one run of a scenario.
type Pool struct {
	scenario conformance.Scenario
	trace    *trace
	seen     *record
	engines  map[string]*engine
	base     string
	server   *http.Server
	vault    *vault
	closing  chan struct{}
	life     context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	renewed  sync.Once

	mu     sync.Mutex
	grants int // guarded by mu; how many leases were given
}

// Start begins a run: a router and the engines a and b, and others that the scenario names. The
// caller closes it.
func Start(s conformance.Scenario) (*Pool, error) {
	p := &Pool{scenario: s, trace: newTrace(), seen: newRecord(), engines: map[string]*engine{}, closing: make(chan struct{})}
	p.life, p.stop = context.WithCancel(context.Background())
	var err error
	if p.vault, err = newVault(s.Trust); err != nil {
		return nil, err
	}
	scripts := map[string]conformance.Engine{"a": {}, "b": {}}
	maps.Copy(scripts, s.Engines)
	for name, script := range scripts {
		e, err := newEngine(p, name, script)
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("engine %s: %w", name, err)
		}
		p.engines[name] = e
	}
	listener, err := (&net.ListenConfig{}).Listen(p.life, "tcp", "127.0.0.1:0")
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("router: %w", err)
	}
	p.base = p.vault.scheme() + listener.Addr().String() + poolPath
	// A client may cut its call at any moment, which the server would log.
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	p.running.Go(func() { _ = p.server.Serve(p.vault.guard(listener)) }) // it ends as Close ends it
	return p, nil
}

// Offer is what the client is told.
func (p *Pool) Offer() conformance.Offer {
	offer := conformance.Offer{BaseURL: p.base, RouterToken: RouterToken, EngineKey: EngineKey}
	if p.vault != nil {
		offer.Authorities = p.vault.file
	}
	return offer
}

// Await waits until the trace shows a WORD, or WORD*N.
func (p *Pool) Await(ctx context.Context, pattern string) error { return p.trace.await(ctx, pattern) }

// errNoOwner: a step asks for what only the owner of a real pool can do.
var errNoOwner = errors.New("a scripted pool has no owner")

// Act fails: what happens to this pool is in its script.
func (p *Pool) Act(context.Context, conformance.Step) error { return errNoOwner }

// Trace is what was seen so far.
func (p *Pool) Trace() []string {
	words, _ := p.trace.look()
	return words
}

// Close ends the run and waits until nothing of it is left.
func (p *Pool) Close() {
	p.stop()
	select {
	case <-p.closing:
	default:
		close(p.closing)
	}
	if p.server != nil {
		_ = p.server.Close()
	}
	for _, e := range p.engines {
		e.close()
	}
	p.running.Wait()
	p.vault.wipe()
}

// next gives the next lease of the scenario.
func (p *Pool) next(requestID string) (*lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := conformance.Grant{Engine: "a"}
	if all := p.scenario.Grants; len(all) > 0 {
		g = all[min(p.grants, len(all)-1)]
	}
	e := p.engines[g.Engine]
	if e == nil {
		return nil, errors.New("the scenario has no engine " + g.Engine)
	}
	p.grants++
	l := &lease{
		requestID: requestID, engine: g.Engine, rid: fmt.Sprintf("%032x", p.grants), token: fmt.Sprintf("lease-token-%d", p.grants),
	}
	l.answer = map[string]any{
		"requestID": requestID, "rid": l.rid, "token": l.token, "weightVersion": "v7", "epoch": conformance.Epoch, "term": 2,
		"backend":    map[string]any{"name": g.Engine, "incarnation": g.Engine + "/1", "url": e.url},
		"ttlSeconds": or(g.TTLSeconds, 120), "startSeconds": or(g.StartSeconds, 30),
	}
	maps.Copy(l.answer, g.Fields)
	return l, nil
}

func or(value, instead int64) int64 {
	if value == 0 {
		return instead
	}
	return value
}
