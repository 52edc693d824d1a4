package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/livepage"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/traffic"
)

const (
	password = "let-me-look"
	engines  = 12
	speed    = 20
)

var demo = router.PoolKey{Namespace: "rl", Name: "policy-32b"}

// stage is a served pool of simulated engines under traffic, and a large one beside it.
type stage struct {
	t     *testing.T
	url   string
	table *router.Table
	seq   uint64

	mu    sync.Mutex
	fleet router.Fleet // guarded by mu
}

// guard lets those in who have the password.
type guard struct{}

func (guard) Authorize(r *http.Request, _ router.PoolKey, _ router.SenderName) error {
	if r.Header.Get("Authorization") == "Bearer "+password {
		return nil
	}
	return &router.Refusal{Reason: server.ReasonUnauthenticated, Detail: "this token is not known"}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, table: router.NewTable("uid-demo", nil, time.Now())}
	s.fleet = router.Fleet{
		Epoch: 3, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Published: "step-41",
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}, {Name: "eval", Access: router.AccessOpen}},
	}
	for i := range engines {
		s.fleet.Members = append(s.fleet.Members, s.engine(fmt.Sprintf("sglang-%d", i)))
	}
	s.table.Lead(2, router.Takeover{}, time.Now())
	s.change(func(*router.Fleet) {})
	for i := range engines {
		s.observe(i, router.Healthy, "step-41")
	}
	pools := router.NewPools()
	pools.Put(demo, s.table)
	pools.Put(router.PoolKey{Namespace: "rl", Name: "thousand"}, thousand(t))
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: []byte(strings.Repeat("k", 32))}, Authorizer: guard{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	page := livepage.New()
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if livepage.Matches(r) {
			page.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		served.CloseClientConnections()
		served.Close()
	})
	s.url = served.URL
	return s
}

func (s *stage) engine(name string) router.Member {
	s.t.Helper()
	engine, err := enginesim.New(enginesim.Config{Name: name, Speed: speed})
	if err != nil {
		s.t.Fatal(err)
	}
	served := httptest.NewServer(engine)
	s.t.Cleanup(func() {
		served.Close()
		engine.Close()
	})
	return router.Member{Name: router.BackendName(name), Incarnation: router.Incarnation(name + "-pod/1"), URL: served.URL, Capacity: 10}
}

func (s *stage) change(f func(*router.Fleet)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.fleet)
	if err := s.table.Apply(s.fleet, time.Now()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) observe(i int, h router.Health, v router.Version) {
	s.seq++
	s.table.Observe(router.Observation{Incarnation: s.fleet.Members[i].Incarnation, Seq: s.seq, Health: h, Version: v, EngineTotal: -1}, time.Now())
}

// flow lets sessions run until the test ends.
func (s *stage) flow() {
	s.t.Helper()
	sessions, err := workload.Limits{Sessions: 96, Turns: 12, Output: 1024}.Generate(1)
	if err != nil {
		s.t.Fatal(err)
	}
	pool, err := client.New(client.Config{BaseURL: s.url + "/v1alpha1/namespaces/rl/inferencepools/policy-32b", Token: func(context.Context) (string, error) { return password, nil }})
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := execlog.Open(filepath.Join(s.t.TempDir(), "clients.jsonl"), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	enough := make(chan struct{})
	player, err := traffic.New(traffic.Config{
		Pool: pool, Sessions: sessions, Epoch: 3, Speed: speed, Log: log, Until: enough,
		Sender: func(i int) string { return []string{"train", "train", "train", "eval"}[i%4] },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- player.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		close(enough)
		<-ended // what was cut is no matter: the page is what is tested
		pool.Close()
		_ = log.Close()
	})
}

// thousand is a pool of a thousand backends of which some are full, some are away and one is in need.
func thousand(t *testing.T) *router.Table {
	t.Helper()
	const n = 1000
	now := time.Now()
	table := router.NewTable("uid-thousand", nil, now)
	f := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Published: "step-7", Target: "step-8",
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	for i := range n {
		name := fmt.Sprintf("rollout-%04d", i)
		m := router.Member{Name: router.BackendName(name), Incarnation: router.Incarnation(name + "/1"), URL: "http://127.0.0.1:30000", Capacity: 64}
		if i%97 == 5 {
			m.Drain = router.DrainMove
		}
		f.Members = append(f.Members, m)
	}
	table.Lead(1, router.Takeover{}, now)
	if err := table.Apply(f, now); err != nil {
		t.Fatal(err)
	}
	for i, m := range f.Members {
		health, version := router.Healthy, router.Version("step-7")
		if i%3 == 0 {
			version = "step-8"
		}
		if i%211 == 17 {
			health = router.Refused
		}
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: health, Version: version}, now)
	}
	for i := range n * 5 {
		id := fmt.Sprint("r", i)
		_, err := table.Acquire(router.Request{
			ID: router.RequestID(id), Session: router.SessionID("s" + id), Sender: "train", Epoch: 1, Executions: int64(1 + (i*i)%15),
		}, now)
		if err != nil {
			t.Fatal(err)
		}
	}
	return table
}
