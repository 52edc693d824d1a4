package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/livepage"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

const (
	password = "let-me-look"
	backends = 12
)

var demo = router.PoolKey{Namespace: "rl", Name: "policy-32b"}

// stage is a served pool of a few backends that rest, and a large one beside it.
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

func (g guard) Authorize(r *http.Request, _ router.PoolKey, _ router.SenderName) error {
	return g.Authenticate(r)
}

func (guard) Authenticate(r *http.Request) error {
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
	for i := range backends {
		s.fleet.Members = append(s.fleet.Members, backend(fmt.Sprintf("sglang-%d", i)))
	}
	s.table.Lead(2, router.Takeover{}, time.Now())
	s.change(func(*router.Fleet) {})
	for i := range backends {
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

func backend(name string) router.Member {
	return router.Member{Name: router.BackendName(name), Incarnation: router.Incarnation(name + "-pod/1"), URL: "http://127.0.0.1:30000", Capacity: 10}
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
