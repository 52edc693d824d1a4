package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// The two pools: one is well, the other's engine resets the connection in the middle of a reply.
const (
	steadyPool = "steady"
	brokenPool = "broken"
)

// house is a proxy before two pools of simulated engines, in this process.
type house struct {
	base   string
	pools  *router.Pools
	fleets map[string]router.Fleet
	logs   map[string]*executions
	server *http.Server
	ends   []func()
	done   sync.WaitGroup
	stop   context.CancelFunc
}

// open starts everything. The caller closes the house.
func open(ctx context.Context) (*house, error) {
	ctx, stop := context.WithCancel(ctx)
	h := &house{pools: router.NewPools(), fleets: map[string]router.Fleet{}, logs: map[string]*executions{}, stop: stop}
	reset := enginesim.Fault{Kind: enginesim.FaultReset, Paths: []string{"/v1/chat/"}, Bytes: 20}
	for pool, engines := range map[string][]enginesim.Config{
		steadyPool: {{Name: "a"}, {Name: "b"}},
		brokenPool: {{Name: "c", Faults: []enginesim.Fault{reset}}},
	} {
		if err := h.addPool(ctx, pool, engines); err != nil {
			h.close()
			return nil, err
		}
	}
	if err := h.serve(ctx); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *house) addPool(ctx context.Context, name string, engines []enginesim.Config) error {
	h.logs[name] = &executions{}
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "agents", Access: router.AccessOpen}},
	}
	if name == brokenPool {
		fleet.Config.Certainty = 0 // the strict form: what is ambiguous fails the pool
	}
	for _, c := range engines {
		url, err := h.addEngine(c, h.logs[name])
		if err != nil {
			return err
		}
		fleet.Members = append(fleet.Members, router.Member{
			Name: router.BackendName(c.Name), Incarnation: router.Incarnation(c.Name + "/1"), URL: url, Capacity: 64})
	}
	table := router.NewTable(router.PoolUID(name), nil, time.Now())
	if err := table.Apply(fleet, time.Now()); err != nil {
		return err
	}
	table.Lead(1, router.Takeover{}, time.Now())
	for _, m := range fleet.Members {
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy}, time.Now())
	}
	h.fleets[name] = fleet
	h.pools.Put(key(name), table)
	h.done.Go(func() { settle(ctx, table) })
	return nil
}

func key(pool string) router.PoolKey { return router.PoolKey{Namespace: "rl", Name: pool} }

func (h *house) addEngine(c enginesim.Config, log *executions) (string, error) {
	c.Speed, c.ServedModelName, c.Log = 20, "policy", log
	engine, err := enginesim.New(c)
	if err != nil {
		return "", err
	}
	h.ends = append(h.ends, engine.Close)
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		return "", err
	}
	h.done.Go(func() { _ = socket.Serve() }) // it ends with its engine
	return socket.URL(), nil
}

func (h *house) serve(ctx context.Context) error {
	p, err := proxy.New(proxy.Config{Pools: h.pools})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.base = "http://" + l.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("/", p)
	mux.HandleFunc("POST /hold", h.hold)
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	h.done.Go(func() { _ = h.server.Serve(l) })
	return nil
}

// hold holds leasing of the steady pool for two seconds, in place of somebody who edits its spec.
func (h *house) hold(w http.ResponseWriter, _ *http.Request) {
	if err := h.apply(steadyPool, func(f *router.Fleet) { f.Leasing = router.LeasingHeld }); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	time.AfterFunc(2*time.Second, func() { _ = h.apply(steadyPool, func(*router.Fleet) {}) }) // if it fails, the client hangs
}

// apply hands a pool's fleet over with a change that lasts until the next one.
func (h *house) apply(pool string, change func(*router.Fleet)) error {
	table, _ := h.pools.Get(key(pool))
	fleet := h.fleets[pool]
	fleet.Senders = append([]router.Sender(nil), fleet.Senders...)
	change(&fleet)
	return table.Apply(fleet, time.Now())
}

// url is the base URL of a pool's proxy, as the OpenAI libraries take it.
func (h *house) url(pool string) string {
	return h.base + "/v1alpha1/namespaces/rl/inferencepools/" + pool + "/senders/agents/proxy/v1"
}

// environment tells a client where it may go.
func (h *house) environment() []string {
	return []string{"STEADY_URL=" + h.url(steadyPool), "BROKEN_URL=" + h.url(brokenPool), "HOLD_URL=" + h.base + "/hold"}
}

func (h *house) close() {
	h.stop()
	if h.server != nil {
		_ = h.server.Close()
	}
	for _, end := range h.ends {
		end()
	}
	h.done.Wait()
}

// counted is what is counted on the pool's backends.
func (h *house) counted(pool string) (n int64) {
	table, _ := h.pools.Get(key(pool))
	for _, b := range table.Snapshot(time.Now()).Backends {
		n += b.Outstanding
	}
	return n
}

// outcomes describes how the pool's leases ended.
func (h *house) outcomes(pool string) string {
	table, _ := h.pools.Get(key(pool))
	return strings.TrimPrefix(fmt.Sprint(table.Snapshot(time.Now()).Totals.Released), "map")
}
