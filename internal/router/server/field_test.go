package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// The tests of this file are reports of people who run such fleets, made small; the comment of
// each names the report.

// counts are what each member counts, and residents what it is home to, in the order of the fleet.
func (w *world) counts() []int64 {
	var out []int64
	for _, m := range w.fleet.Members {
		out = append(out, w.backend(m.Incarnation).Outstanding)
	}
	return out
}

func (w *world) backend(inc router.Incarnation) router.BackendSnapshot {
	w.t.Helper()
	for _, b := range w.snapshot().Backends {
		if b.Incarnation == inc {
			return b
		}
	}
	w.t.Fatalf("no backend %s", inc)
	return router.BackendSnapshot{}
}

// visit opens a session for one lease and ends both; it returns the backend.
func (w *world) visit(id string) string {
	w.t.Helper()
	r := w.lease(id, "s-"+id)
	w.release(id, object{"token": r.text("token"), "outcome": "Succeeded"})
	w.do(http.MethodDelete, w.pool+"/sessions/s-"+id+"?sender=train", nil)
	return r.text("backend", "name")
}

func spread(counts []int64) int64 {
	least, most := counts[0], counts[0]
	for _, c := range counts {
		least, most = min(least, c), max(most, c)
	}
	return most - least
}

// verl#7613, torchtitan#4109: ties that pick the first candidate pin an idle pool to one replica.
func TestAnIdlePoolIsUsedEvenly(t *testing.T) {
	w := newWorld(t, 4)
	got := map[string]int64{}
	for i := range 200 {
		got[w.visit(fmt.Sprint("r", i))]++
	}
	for name, n := range got {
		if n < 49 || n > 51 {
			t.Errorf("%s got %d of 200", name, n)
		}
	}
}

func TestAnIdlePoolIsUsedEvenlyWhileOneDrainsEveryOtherTime(t *testing.T) {
	w := newWorld(t, 4)
	got := map[string]int64{}
	for i := range 200 {
		w.change(func(f *router.Fleet) { f.Members[1].Drain = []router.Drain{router.NotDraining, router.DrainMove}[i%2] })
		got[w.visit(fmt.Sprint("r", i))]++
	}
	if s := spread([]int64{got["b0"], got["b2"], got["b3"]}); s > 2 {
		t.Errorf("%v", got)
	}
}

// vllm-project/router#215: a client that disconnects leaks a count; a restarted worker then
// draws all traffic.
func TestDisconnectsAndDoubleReleasesLeaveNoCount(t *testing.T) {
	w := newWorld(t, 16)
	dice := rand.New(rand.NewPCG(1, 2))
	var wg sync.WaitGroup
	work := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range work {
				w.erratic(i)
			}
		})
	}
	for i := range 1000 {
		work <- i*4 + dice.IntN(4)
	}
	close(work)
	wg.Wait()
	for _, b := range w.snapshot().Backends {
		if b.Outstanding != 0 {
			t.Errorf("%s counts %d", b.Name, b.Outstanding)
		}
	}
	w.restart(0, "c-2")
	for i := range 160 {
		w.lease(fmt.Sprint("after-", i), fmt.Sprint("s-after-", i))
	}
	if n := w.counts()[0]; n > 15 {
		t.Errorf("the restarted backend got %d of 160", n)
	}
}

// erratic is a client that, by the dice in n%4, hangs up at once, hangs up and forgoes,
// releases once, or releases twice. Whatever it left behind is forgone at the end, as clients
// that come back do.
func (w *world) erratic(n int) {
	id := fmt.Sprint("r", n)
	body := ask(id, "s-"+id)
	ctx, hangUp := context.WithCancel(w.t.Context())
	defer hangUp()
	if n%4 < 2 {
		stop := time.AfterFunc(time.Duration(n%7)*100*time.Microsecond, hangUp)
		defer stop.Stop()
	}
	r, err := w.try(ctx, http.MethodPost, w.pool+"/leases", body)
	if err != nil || r.status == 0 || n%4 < 2 {
		w.release(id, object{"sessionID": "s-" + id, "sender": "train", "senderGeneration": 3, "epoch": 1, "outcome": "NotSent"})
	} else {
		for range 1 + n%2 {
			w.release(id, object{"token": r.text("token"), "outcome": "Succeeded"})
		}
	}
	w.do(http.MethodDelete, w.pool+"/sessions/s-"+id+"?sender=train", nil)
}

// restart replaces the engine process of a member: the kubelet reports the old one terminated.
func (w *world) restart(i int, container string) {
	w.t.Helper()
	old := w.fleet.Members[i].Incarnation
	w.change(func(f *router.Fleet) {
		f.Members[i].Incarnation = router.Incarnation(fmt.Sprintf("pod-%d/%s", i, container))
	})
	w.table.Gone([]router.Incarnation{old}, w.clock())
	w.healthy()
}

// vllm-project/router#197, dynamo#13513, miles#2475, #692: a health tick or a re-added worker
// zeroes a live load or drives it negative; the same URL stays dead for ever.
func TestFlapsAndReAddingKeepTheLedgerTrue(t *testing.T) {
	w := newWorld(t, 2)
	w.change(func(f *router.Fleet) { f.Members[1].Drain = router.DrainMove })
	var tokens []string
	for i := range 16 {
		tokens = append(tokens, w.lease(fmt.Sprint("r", i), fmt.Sprint("s", i)).text("token"))
	}
	w.change(func(f *router.Fleet) { f.Members[1].Drain = router.NotDraining })
	for _, h := range []router.Health{router.Healthy, router.Unhealthy, router.Refused, router.Healthy} {
		w.observe("pod-0/c-1", h)
	}
	for i := range 8 {
		if got := w.lease(fmt.Sprint("n", i), fmt.Sprint("sn", i)).text("backend", "name"); got != "b1" {
			t.Fatalf("a new session went to %s, which runs 16", got)
		}
	}
	w.restart(0, "c-2")
	if n := w.counts()[0]; n != 0 {
		t.Fatalf("the new incarnation starts at %d", n)
	}
	for i, token := range tokens {
		w.release(fmt.Sprint("r", i), object{"token": token, "outcome": "Ambiguous"})
	}
	if n := w.counts()[0]; n != 0 {
		t.Fatalf("releases of the old incarnation left %d on the new", n)
	}
	if got := w.lease("later", "s-later").text("backend", "name"); got != "b0" {
		t.Errorf("the new incarnation is not used: %s", got)
	}
}

// verl#3340, dynamo#589, aibrix#646: per-client or lagged load herds a burst onto one replica.
func TestABurstOfManyClientsSpreads(t *testing.T) {
	w := newWorld(t, 16)
	var wg sync.WaitGroup
	for c := range 16 {
		wg.Go(func() {
			for i := range 4 {
				id := fmt.Sprintf("r-%d-%d", c, i)
				if _, err := w.try(t.Context(), http.MethodPost, w.pool+"/leases", ask(id, "s-"+id)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := w.counts(); spread(got) > 1 {
		t.Errorf("%v", got)
	}
}

// AIBrix#2365: unequal GPUs are treated alike.
func TestLoadIsInProportionToCapacity(t *testing.T) {
	w := newWorld(t, 16, func(_ *Config, f *router.Fleet) {
		for i := 12; i < 16; i++ {
			f.Members[i].Capacity = 32
		}
	})
	for i := range 700 {
		w.lease(fmt.Sprint("r", i), fmt.Sprint("s", i))
	}
	got := w.counts()
	for _, large := range got[:12] {
		for _, small := range got[12:] {
			if d := large - 2*small; d < -2 || d > 2 {
				t.Fatalf("%v", got)
			}
		}
	}
}

// prime-rl#3255: hashing pins a saturated engine while others idle.
func TestNewSessionsAvoidASaturatedBackend(t *testing.T) {
	w := newWorld(t, 4)
	heavy := w.lease("r0", "heavy", object{"executions": 64}).text("backend", "name")
	for i := range 30 {
		if got := w.lease(fmt.Sprint("n", i), fmt.Sprint("s", i)).text("backend", "name"); got == heavy {
			t.Fatalf("session %d went to the saturated %s", i, heavy)
		}
	}
}

// verl#6533: eager rebalancing evened the load and made steps slower.
func TestASessionStaysThoughOthersHaveLessToDo(t *testing.T) {
	w := newWorld(t, 4)
	home := w.lease("r0", "s0").text("backend", "name")
	w.lease("r1", "s0", object{"executions": 60})
	for i := range 20 {
		if got := w.lease(fmt.Sprint("t", i), "s0").text("backend", "name"); got != home {
			t.Fatalf("turn %d moved from %s to %s", i, home, got)
		}
	}
}

// sglang#15473: load was never counted on one protocol.
func TestABatchCountsAsSingleAcquiresDo(t *testing.T) {
	single, batch := newWorld(t, 4), newWorld(t, 4)
	var many []object
	for i := range 22 {
		body := ask(fmt.Sprint("r", i), fmt.Sprint("s", i%9), object{"executions": 1 + i%3})
		if r := single.do(http.MethodPost, single.pool+"/leases", body); r.status != http.StatusCreated {
			t.Fatal(r.raw)
		}
		many = append(many, body)
	}
	batch.batch(many...)
	if a, b := fmt.Sprint(single.counts()), fmt.Sprint(batch.counts()); a != b {
		t.Errorf("single acquires count %s, a batch %s", a, b)
	}
}
