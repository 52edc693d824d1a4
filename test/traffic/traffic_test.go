package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const speed = 1000

// scene is a served pool of simulated engines, in this process.
type scene struct {
	logs  string
	url   string
	table *router.Table
	fleet router.Fleet
}

func newScene(t *testing.T, engines int) *scene {
	t.Helper()
	now := time.Now()
	s := &scene{logs: t.TempDir(), table: router.NewTable("uid-1", nil, now)}
	s.fleet = router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}, {Name: "eval", Access: router.AccessOpen}},
	}
	for i := range engines {
		s.fleet.Members = append(s.fleet.Members, s.engine(t, fmt.Sprintf("e%d", i)))
	}
	s.table.Lead(1, router.Takeover{}, now)
	s.apply(t)
	for _, m := range s.fleet.Members {
		s.table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1}, now)
	}
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, s.table)
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: []byte(strings.Repeat("k", 32))}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	s.url = served.URL + "/v1alpha1/namespaces/rl/inferencepools/policy"
	return s
}

// engine starts one and returns it as the router sees it.
func (s *scene) engine(t *testing.T, name string) router.Member {
	t.Helper()
	log, err := execlog.Open(filepath.Join(s.logs, name+execlog.Suffix), 0)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := enginesim.New(enginesim.Config{Name: name, Speed: speed, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(engine)
	t.Cleanup(func() {
		served.Close()
		engine.Close()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return router.Member{Name: router.BackendName(name), Incarnation: router.Incarnation(name + "/1"), URL: served.URL, Capacity: 64}
}

func (s *scene) apply(t *testing.T) {
	t.Helper()
	if err := s.table.Apply(s.fleet, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// player returns one for a small workload, and how to judge it afterwards.
func (s *scene) player(t *testing.T, plant Plant) (*Player, func() verdict.Run) {
	t.Helper()
	sessions, err := workload.Limits{Sessions: 12, Turns: 5, Output: 64}.Generate(1)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := client.New(client.Config{BaseURL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	path := filepath.Join(t.TempDir(), "clients.jsonl")
	log, err := execlog.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	closed := sync.OnceValue(log.Close)
	t.Cleanup(func() {
		if err := closed(); err != nil {
			t.Error(err)
		}
	})
	player, err := New(Config{
		Pool: pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Plant: plant,
		Sender: func(i int) string { return []string{"train", "eval"}[i%2] },
	})
	if err != nil {
		t.Fatal(err)
	}
	return player, func() verdict.Run {
		t.Helper()
		if err := closed(); err != nil {
			t.Fatal(err)
		}
		engines, err := execlog.ReadFiles(s.logs)
		if err != nil {
			t.Fatal(err)
		}
		clients, err := execlog.ReadClientFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		return verdict.Run{Sessions: sessions, Engines: engines, Clients: clients}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestPlayerRunsEveryTurnOnceAndLeavesNothingCounted(t *testing.T) {
	s := newScene(t, 2)
	player, judge := s.player(t, PlantNone)
	if err := player.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	run := judge()
	if faults := run.Faults(); len(faults) > 0 {
		t.Errorf("faults: %s", strings.Join(faults, "\n"))
	}
	want := Counts{Started: 60, Done: 60, Ended: 12}
	if got := player.Counts(""); got != want {
		t.Errorf("counts are %+v, want %+v", got, want)
	}
	if got := player.Counts("eval"); got.Done != 30 {
		t.Errorf("eval has done %d turns, want half of them", got.Done)
	}
	view := s.table.Snapshot(time.Now())
	for _, b := range view.Backends {
		if b.Outstanding != 0 || b.Sessions != 0 {
			t.Errorf("%s: %d outstanding, %d sessions at the end", b.Name, b.Outstanding, b.Sessions)
		}
	}
	for _, row := range verdict.Measured([]verdict.Backend{{Name: "e0", Capacity: 64}, {Name: "e1", Capacity: 64}}, run.Engines) {
		if row.Sessions == 0 || row.OutputTokens == 0 {
			t.Errorf("%s had no work: %+v", row.Name, row)
		}
	}
}

func TestPlantedReplayIsFoundByTheEnginesRecords(t *testing.T) {
	s := newScene(t, 2)
	player, judge := s.player(t, PlantReplay)
	if err := player.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	run := judge()
	// The engine may have finished before it noticed the cut; either is forbidden.
	if report := execlog.Check(run.Engines, run.Clients); len(report.Violations) != 1 {
		t.Errorf("the records show %d starts that were not allowed, want the one of the first session", len(report.Violations))
	}
	if len(run.Faults()) == 0 {
		t.Error("the run passes for good")
	}
}

func TestPlayerWaitsWhileItsSenderIsFenced(t *testing.T) {
	s := newScene(t, 2)
	s.fleet.Senders[1].Access = router.AccessFenced
	s.apply(t)
	player, judge := s.player(t, PlantNone)
	ctx := within(t)
	played := make(chan error, 1)
	go func() { played <- player.Run(ctx) }()
	if err := player.Await(ctx, "train", 30); err != nil {
		t.Fatal(err)
	}
	if got := player.Counts("eval"); got.Started != 0 {
		t.Errorf("eval has started %d requests behind its fence", got.Started)
	}
	s.fleet.Senders[1].Access = router.AccessOpen
	s.apply(t)
	if err := <-played; err != nil {
		t.Fatal(err)
	}
	if faults := judge().Faults(); len(faults) > 0 {
		t.Errorf("faults: %s", strings.Join(faults, "\n"))
	}
}

func TestAwaitFailsOnceAllTrafficHasEnded(t *testing.T) {
	s := newScene(t, 1)
	player, _ := s.player(t, PlantNone)
	ctx := within(t)
	if err := player.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := player.Await(ctx, "train", 1000); !errors.Is(err, ErrEnded) {
		t.Errorf("Await gave %v, want %v", err, ErrEnded)
	}
	if err := player.AwaitDone(ctx, 60); err != nil {
		t.Errorf("AwaitDone of what is done gave %v", err)
	}
}

func TestPlayerReportsARefusalThatWaitingCannotMend(t *testing.T) {
	s := newScene(t, 1)
	s.fleet.Epoch = 2
	s.apply(t)
	player, _ := s.player(t, PlantNone)
	if err := player.Run(within(t)); !errors.Is(err, client.ErrStaleEpoch) {
		t.Errorf("Run gave %v, want %v", err, client.ErrStaleEpoch)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	for name, c := range map[string]Config{
		"nothing is set": {},
		"no sessions":    {Pool: &client.Pool{}, Sender: func(int) string { return "" }, Log: &execlog.Writer{}, Speed: 1},
		"no speed": {
			Pool: &client.Pool{}, Sender: func(int) string { return "" }, Log: &execlog.Writer{}, Sessions: make([]workload.Session, 1),
		},
		"an unknown fault": {
			Pool: &client.Pool{}, Sender: func(int) string { return "" }, Log: &execlog.Writer{}, Sessions: make([]workload.Session, 1),
			Speed: 1, Plant: "typo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(c); err == nil {
				t.Error("was accepted")
			}
		})
	}
}
