package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a pool, its proxy on a real socket, and a settler whose time runs only while something
// waits to be settled.
type rig struct {
	t     *testing.T
	table *router.Table
	pools *router.Pools
	proxy *proxy.Handler
	fleet router.Fleet
	base  string // the proxy's base URL for sender train
	seq   uint64
	ahead atomic.Int64 // how far the rig's clock is ahead of the machine's
}

var rigKey = router.PoolKey{Namespace: "rl", Name: "policy"}

// newRig makes a pool of the engines at these URLs.
func newRig(t *testing.T, cfg proxy.Config, urls ...string) *rig {
	t.Helper()
	g := &rig{t: t, pools: router.NewPools()}
	g.table = router.NewTable("uid", nil, time.Now())
	g.fleet = router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}, {Name: "eval", Access: router.AccessOpen}},
	}
	for i, url := range urls {
		name := fmt.Sprintf("b%d", i)
		g.fleet.Members = append(g.fleet.Members, router.Member{
			Name: router.BackendName(name), Incarnation: router.Incarnation(name + "/1"), URL: strings.TrimRight(url, "/"), Capacity: 8})
	}
	g.apply()
	g.table.Lead(1, router.Takeover{}, g.now())
	g.observe(router.Healthy)
	g.pools.Put(rigKey, g.table)
	g.serve(cfg)
	g.settle()
	return g
}

func (g *rig) now() time.Time { return time.Now().Add(time.Duration(g.ahead.Load())) }

func (g *rig) apply() {
	g.t.Helper()
	if err := g.table.Apply(g.fleet, g.now()); err != nil {
		g.t.Fatal(err)
	}
}

// observe tells the table of every backend's health, as a prober would.
func (g *rig) observe(health router.Health) {
	g.seq++
	for _, m := range g.fleet.Members {
		g.table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: g.seq, Health: health}, g.now())
	}
}

// runs tells the table that every engine runs a version, and versions what it takes them to run.
func (g *rig) runs(v router.Version) {
	g.seq++
	for _, m := range g.fleet.Members {
		g.table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: g.seq, Health: router.Healthy, Version: v}, g.now())
	}
}

func (g *rig) versions() []router.Version {
	var list []router.Version
	for _, b := range g.table.Snapshot(g.now()).Backends {
		list = append(list, b.Version)
	}
	return list
}

func (g *rig) serve(cfg proxy.Config) {
	g.t.Helper()
	transport := wire.New(wire.Config{})
	cfg.Pools, cfg.Clock = g.pools, g.now
	if cfg.Transport == nil {
		cfg.Transport = transport
	}
	cfg.Limits.SpoolDir, cfg.Limits.Look = g.t.TempDir(), 5*time.Millisecond
	var err error
	if g.proxy, err = proxy.New(cfg); err != nil {
		g.t.Fatal(err)
	}
	srv := httptest.NewServer(g.proxy)
	g.base = srv.URL + "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy"
	g.t.Cleanup(func() {
		srv.Close()
		transport.Close()
	})
}

// settle asks the engines what the table wants to know, and lets time run while it waits for that.
func (g *rig) settle() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			g.settleOnce(ctx)
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	g.t.Cleanup(func() { cancel(); done.Wait() })
}

func (g *rig) settleOnce(ctx context.Context) {
	held := int64(0)
	for _, b := range g.snapshot().Backends {
		held += b.Held
	}
	if held > 0 {
		g.ahead.Add(int64(250 * time.Millisecond))
	}
	for _, c := range g.table.Chores(g.now()) {
		var aborted []router.RID
		for _, rid := range c.Abort {
			if status, _ := ask(ctx, c.URL+"/abort_request", fmt.Sprintf(`{"rid":%q}`, rid)); status == 200 {
				aborted = append(aborted, rid)
			}
		}
		g.table.AbortAnswered(c.Incarnation, aborted, g.now())
		if c.ReadLoads {
			if ranks, ok := loads(ctx, c.URL); ok {
				g.table.LoadsRead(c.Incarnation, c.Stamp, ranks, g.now())
			}
		}
	}
}

func loads(ctx context.Context, url string) (out []router.RankLoad, ok bool) {
	status, text := ask(ctx, url+"/v1/loads", "")
	var reply struct {
		Loads []struct {
			Timestamp json.Number `json:"timestamp"`
			Rank      int         `json:"dp_rank"`
			Running   int64       `json:"num_running_reqs"`
			Waiting   int64       `json:"num_waiting_reqs"`
		} `json:"loads"`
	}
	if status != 200 || json.Unmarshal([]byte(text), &reply) != nil {
		return nil, false
	}
	for _, l := range reply.Loads {
		at, _ := l.Timestamp.Float64()
		out = append(out, router.RankLoad{Rank: l.Rank, Clock: at, Total: l.Running + l.Waiting})
	}
	return out, true
}

// ask makes one call on a connection of its own.
func ask(ctx context.Context, url, body string) (int, string) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(text) + "!" + err.Error()
	}
	return resp.StatusCode, string(text)
}

func (g *rig) snapshot() router.Snapshot { return g.table.Snapshot(g.now()) }

// counted is what is counted on all backends now.
func (g *rig) counted() (n int64) {
	for _, b := range g.snapshot().Backends {
		n += b.Outstanding
	}
	return n
}

func (g *rig) backend(name string) router.BackendSnapshot {
	for _, b := range g.snapshot().Backends {
		if string(b.Name) == name {
			return b
		}
	}
	return router.BackendSnapshot{}
}

// released is how often leases were released with that outcome.
func (g *rig) released(o router.Outcome) int64 { return g.snapshot().Totals.Released[o] }

// eventually waits up to a minute for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("in a minute it did not come true that %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// post sends a generation through the proxy.
func (g *rig) post(path, body string, head ...string) (int, string) {
	status, text, _ := g.send(context.Background(), path, body, head...)
	return status, text
}

func (g *rig) send(ctx context.Context, path, body string, head ...string) (int, string, http.Header) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.base+path, strings.NewReader(body))
	if err != nil {
		g.t.Error(err)
		return 0, "", nil
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(text) + "!" + err.Error(), resp.Header
	}
	return resp.StatusCode, string(text), resp.Header
}
