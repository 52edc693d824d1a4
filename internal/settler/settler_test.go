package settler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine answers one call of one fake engine; rid is set for aborts.
type engine func(r *http.Request, rid string) (*http.Response, error)

// network gives each host a fake engine and notes what was asked of it.
type network struct {
	engines map[string]engine

	mu    sync.Mutex
	asked map[string][]string // guarded by mu; by host
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		RID string `json:"rid"`
	}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	n.asked[r.URL.Host] = append(n.asked[r.URL.Host], r.URL.Path+" "+body.RID+r.Header.Get("Authorization"))
	n.mu.Unlock()
	return n.engines[r.URL.Host](r, body.RID)
}

func (n *network) of(host string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.asked[host]...)
}

func newNetwork(engines map[string]engine) *network {
	return &network{engines: engines, asked: map[string][]string{}}
}

func respond(code int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func hung(r *http.Request, _ string) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

const idle = `{"loads":[{"dp_rank":0,"timestamp":7.5,"queues":{}},{"dp_rank":1,"timestamp":8,"num_running_reqs":1,"queues":{"paused":2}}]}`

func obliging(r *http.Request, _ string) (*http.Response, error) {
	if r.URL.Path == "/v1/loads" {
		return respond(200, idle)
	}
	return respond(200, "")
}

// desk is a fake table: it hands out its chores every time, and files the answers.
type desk struct {
	chores []router.Chore

	mu     sync.Mutex
	aborts map[router.Incarnation][][]router.RID // guarded by mu
	loads  map[router.Incarnation][]read         // guarded by mu
}

type read struct {
	Stamp uint64
	Ranks []router.RankLoad
}

func newDesk(chores ...router.Chore) *desk {
	return &desk{chores: chores, aborts: map[router.Incarnation][][]router.RID{}, loads: map[router.Incarnation][]read{}}
}

func (d *desk) Chores(time.Time) []router.Chore { return d.chores }

func (d *desk) Tick(time.Time) {}

func (d *desk) AbortAnswered(i router.Incarnation, rids []router.RID, _ time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aborts[i] = append(d.aborts[i], rids)
}

func (d *desk) LoadsRead(i router.Incarnation, stamp uint64, ranks []router.RankLoad, _ time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loads[i] = append(d.loads[i], read{stamp, ranks})
}

// serve runs a settler for d of virtual time.
func serve(t *testing.T, table Table, net *network, d time.Duration, keys sglang.KeySource) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(ctx, table, Config{Transport: net, Keys: keys})
	}()
	<-time.After(d)
	cancel()
	<-done
}

func chore(host string, reads bool, aborts ...router.RID) router.Chore {
	return router.Chore{Incarnation: router.Incarnation(host), URL: "http://" + host + ":1", Abort: aborts, ReadLoads: reads, Stamp: 9}
}

func TestAChoreIsCarriedOutAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(map[string]engine{"a:1": obliging})
		d := newDesk(chore("a", true, "r1", "r2"))
		serve(t, d, net, round+time.Millisecond, func() sglang.Keys { return sglang.Keys{API: "k", Admin: "adm"} })
		want := []string{"/abort_request r1Bearer adm", "/abort_request r2Bearer adm", "/v1/loads Bearer k"}
		if diff := cmp.Diff(want, net.of("a:1")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([][]router.RID{{"r1", "r2"}}, d.aborts["a"]); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]read{{9, []router.RankLoad{{Rank: 0, Clock: 7.5}, {Rank: 1, Clock: 8, Total: 3}}}}, d.loads["a"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAChoreIsCarriedOutNoFurtherThanItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(map[string]engine{"a:1": obliging, "b:1": obliging})
		d := newDesk(chore("a", false, "r1"), chore("b", true))
		serve(t, d, net, round+time.Millisecond, nil)
		if diff := cmp.Diff([]string{"/abort_request r1"}, net.of("a:1")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"/v1/loads "}, net.of("b:1")); diff != "" {
			t.Error(diff)
		}
		if len(d.aborts["b"]) != 0 || len(d.loads["a"]) != 0 {
			t.Errorf("answered %v and %v", d.aborts, d.loads)
		}
	})
}

func TestOnlyWhatWasAnsweredCounts(t *testing.T) {
	partial := func(r *http.Request, _ string) (*http.Response, error) {
		return respond(200, `{"loads":[{"dp_rank":0,"timestamp":1,"queues":{}},{"dp_rank":1,"timestamp":1}]}`)
	}
	second := func(r *http.Request, rid string) (*http.Response, error) {
		if rid == "r2" {
			return nil, errors.New("connection reset")
		}
		return obliging(r, rid)
	}
	cases := map[string]struct {
		engine engine
		aborts [][]router.RID
		loads  int
	}{
		"an engine that fails half-way":       {second, [][]router.RID{{"r1"}}, 1},
		"an engine that refuses the key":      {func(*http.Request, string) (*http.Response, error) { return respond(401, "") }, nil, 0},
		"an engine that hides some queues":    {partial, [][]router.RID{{"r1", "r2", "r3"}}, 0},
		"an engine that answers none of it":   {hung, nil, 0},
		"an engine whose load cannot be read": {func(*http.Request, string) (*http.Response, error) { return respond(200, "oops") }, [][]router.RID{{"r1", "r2", "r3"}}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(chore("a", true, "r1", "r2", "r3"))
				serve(t, d, newNetwork(map[string]engine{"a:1": c.engine}), round+time.Millisecond, nil)
				if diff := cmp.Diff(c.aborts, d.aborts["a"]); diff != "" {
					t.Error(diff)
				}
				if got := len(d.loads["a"]); got != c.loads {
					t.Errorf("%d loads were handed in, want %d", got, c.loads)
				}
			})
		})
	}
}

func TestAnAddressThatNobodyCanCallIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(router.Chore{Incarnation: "a", URL: "http://a/path", ReadLoads: true})
		serve(t, d, newNetwork(nil), time.Second, nil)
	})
}

func TestAHungEngineDelaysNobodyAndIsAskedOneThingAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, chores := map[string]engine{"hung:1": hung}, []router.Chore{chore("hung", true, "r")}
		for i := range 20 {
			host := fmt.Sprint("e", i)
			engines[host+":1"] = obliging
			chores = append(chores, chore(host, true))
		}
		net, d := newNetwork(engines), newDesk(chores...)
		serve(t, d, net, 9*time.Second+round/2, nil)
		for i := range 20 {
			if got := len(d.loads[router.Incarnation(fmt.Sprint("e", i))]); got != 36 {
				t.Errorf("e%d answered %d times in 36 rounds", i, got)
			}
		}
		// One abort, cut after 5 s, the read of the load after it, cut by the end.
		if diff := cmp.Diff([]string{"/abort_request r", "/v1/loads "}, net.of("hung:1")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestALostExecutionIsAbortedAndProvenGone runs the real router against an engine whose clock
// goes on.
func TestALostExecutionIsAbortedAndProvenGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		runs := map[string]bool{}
		live := func(r *http.Request, rid string) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Path == "/abort_request" {
				delete(runs, rid)
				return respond(200, "")
			}
			return respond(200, fmt.Sprintf(`{"loads":[{"dp_rank":0,"timestamp":%f,"num_running_reqs":%d,"queues":{}}]}`,
				time.Since(began).Seconds(), len(runs)))
		}
		table := router.NewTable("uid", nil, began)
		fleet := router.Fleet{
			Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
			Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
			Members: []router.Member{{Name: "a", Incarnation: "a/1", URL: "http://a:1", Capacity: 4}},
		}
		if err := table.Apply(fleet, began); err != nil {
			t.Fatal(err)
		}
		table.Lead(1, router.Takeover{}, began)
		table.Observe(router.Observation{Incarnation: "a/1", Seq: 1, Health: router.Healthy}, began)
		grant, err := table.Acquire(router.Request{ID: "r1", Session: "s1", Sender: "train", Epoch: 1, Executions: 1}, began)
		if err != nil {
			t.Fatal(err)
		}
		runs[string(grant.Claim.RID)] = true
		if _, err := table.Release(grant.Claim, router.Ambiguous, router.Reply{}, began); err != nil {
			t.Fatal(err)
		}
		net := newNetwork(map[string]engine{"a:1": live})
		serve(t, table, net, 30*time.Second, nil)
		ending, err := table.Release(grant.Claim, router.Ambiguous, router.Reply{}, time.Now())
		if err != nil || ending.Fate != router.FateDead {
			t.Errorf("got %+v, %v; asked %v", ending, err, net.of("a:1"))
		}
	})
}
