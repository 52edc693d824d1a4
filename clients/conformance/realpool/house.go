package realpool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/settler"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// poolUID is the pool's; another router that takes it over finds it in tokens.
const poolUID = "uid"

// ttl is that of leases: short, so that tests see renewals.
const ttl = 6 * time.Second

// speed is how much faster than real time the engines live.
const speed = 50

// House is the whole pool. Its methods may be called from any goroutine.
type House struct {
	life    context.Context
	stop    context.CancelFunc
	base    string
	engines map[string]string
	records *records
	pools   *router.Pools
	targets []prober.Target
	running sync.WaitGroup

	mu    sync.Mutex
	fleet router.Fleet  // guarded by mu
	term  router.Term   // guarded by mu
	table *router.Table // guarded by mu; of the router that reigns
	end   func()        // guarded by mu; ends its settler
}

// Open builds a pool with one engine for each element of faults, which are in force there from the
// start. It has the sender train, and is in epoch 1. The caller closes it.
func Open(faults ...[]enginesim.Fault) (*House, error) {
	config := router.DefaultConfig()
	config.TTL, config.StartWindow = ttl, ttl/2
	h := &House{engines: map[string]string{}, records: &records{}, pools: router.NewPools(), fleet: router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: config, Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}}
	h.life, h.stop = context.WithCancel(context.Background())
	if err := h.open(faults); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *House) open(faults [][]enginesim.Fault) error {
	for i, f := range faults {
		if err := h.engine(fmt.Sprint("e", i), f); err != nil {
			return fmt.Errorf("engine %d: %w", i, err)
		}
	}
	if err := h.TakeOver(); err != nil {
		return err
	}
	probes := prober.New(h, prober.Config{})
	h.running.Go(func() {
		<-h.life.Done()
		probes.Close()
	})
	probes.Set(poolUID, h.targets)
	if !h.serving(h.life) {
		return errors.New("not every engine is fit to be leased")
	}
	return h.serve()
}

// Close ends everything, and waits until nothing is left.
func (h *House) Close() {
	h.stop()
	h.running.Wait()
}

// BaseURL is the pool's address in the router's API.
func (h *House) BaseURL() string { return h.base }

// Engines are the engines' addresses, by name.
func (h *House) Engines() map[string]string { return h.engines }

// engine starts one engine and puts it into the fleet.
func (h *House) engine(name string, faults []enginesim.Fault) error {
	engine, err := enginesim.New(enginesim.Config{Name: name, Speed: speed, Log: h.records, Faults: faults})
	if err != nil {
		return err
	}
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	h.running.Go(func() {
		<-h.life.Done()
		engine.Close()
	})
	h.running.Go(func() { _ = socket.Serve() }) // it ends with the engine
	url, err := sglang.ParseBaseURL(socket.URL())
	if err != nil {
		return err
	}
	h.engines[name] = url.String()
	h.fleet.Members = append(h.fleet.Members, router.Member{
		Name: router.BackendName(name), Incarnation: router.Incarnation(name + "/1"), URL: url.String(), Capacity: 8,
	})
	h.targets = append(h.targets, prober.Target{
		Incarnation: name + "/1", URL: url, Period: 200 * time.Millisecond, Timeout: 30 * time.Second, FailureThreshold: 3,
	})
	return nil
}

// TakeOver begins the next term, with a router that knows nothing of the one before.
func (h *House) TakeOver() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term++
	past := router.Takeover{}
	if h.term > 1 {
		past.Windows = h.fleet.Config.StartWindow
		for i := range h.fleet.Members {
			h.fleet.Members[i].Load = router.LoadUnknown
		}
		h.end()
	}
	table := router.NewTable(poolUID, nil, time.Now())
	if err := table.Apply(h.fleet, time.Now()); err != nil {
		return fmt.Errorf("take the pool over: %w", err)
	}
	table.Lead(h.term, past, time.Now())
	h.table, h.end = table, h.settle(table)
	h.pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, table)
	return nil
}

// settle lets the engines be asked what a router wants to know, until the function that it returns is
// called.
func (h *House) settle(table *router.Table) func() {
	ctx, cancel := context.WithCancel(h.life)
	h.running.Go(func() {
		transport := sglang.NewTransport()
		defer transport.CloseIdleConnections()
		settler.Run(ctx, table, settler.Config{Transport: transport})
	})
	return cancel
}

func (h *House) serve() error {
	api, err := server.New(server.Config{Pools: h.pools, Keys: server.Keys{Current: make([]byte, 32)}})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(h.life, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	h.running.Go(func() { _ = api.Serve(h.life, listener) }) // it ends with the house
	h.base = "http://" + listener.Addr().String() + "/v1alpha1/namespaces/rl/inferencepools/policy"
	return nil
}

// Observe hands what the prober learns to the router that reigns.
func (h *House) Observe(o prober.Observation) {
	health := map[prober.Verdict]router.Health{
		prober.Healthy: router.Healthy, prober.Unhealthy: router.Unhealthy,
		prober.Refused: router.Refused, prober.SuspectedPaused: router.SuspectedPaused,
	}
	h.reigning().Observe(router.Observation{
		Incarnation: router.Incarnation(o.Incarnation), Seq: o.Seq, Health: health[o.Verdict],
		Capacity: o.Capacity, EngineTotal: o.EngineTotal,
	}, o.At)
}

func (h *House) reigning() *router.Table {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table
}
