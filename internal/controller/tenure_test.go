package controller

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

var (
	thePool  = types.NamespacedName{Namespace: "rl", Name: "policy"}
	theTable = router.PoolKey{Namespace: "rl", Name: "policy"}
)

// untilDone serves a table by doing nothing.
func untilDone(ctx context.Context, _ *router.Table) { <-ctx.Done() }

func TestTenureIsOnePerPoolObject(t *testing.T) {
	defer goleak.VerifyNone(t)
	pools := router.NewPools()
	ts := newTenures(pools, func(context.Context, types.NamespacedName) {}, untilDone)
	defer ts.close()
	first := ts.enter(t.Context(), thePool, "u1", noon)
	if again := ts.enter(t.Context(), thePool, "u1", noon); again != first {
		t.Error("the same pool got another tenure")
	}
	second := ts.enter(t.Context(), thePool, "u2", noon)
	if second == first {
		t.Error("a pool of the same name and another UID got the tenure of the old one")
	}
	if found, _ := pools.Get(theTable); found != second.table {
		t.Error("the name does not lead to the table of the pool that has it now")
	}
	if ts.table("u1") != nil || ts.table("u2") != second.table {
		t.Error("the UIDs do not lead to their tables")
	}
	if ts.leave(thePool) != second || ts.get(thePool) != nil {
		t.Error("the tenure goes on after it was left")
	}
	if _, found := pools.Get(theTable); found {
		t.Error("the table is found after its tenure")
	}
	if ts.leave(thePool) != nil {
		t.Error("a tenure was left twice")
	}
}

func TestTenureOutlivesTheCallThatBeganIt(t *testing.T) {
	defer goleak.VerifyNone(t)
	served := make(chan context.Context, 1)
	ts := newTenures(router.NewPools(), func(context.Context, types.NamespacedName) {}, func(ctx context.Context, _ *router.Table) {
		served <- ctx
		<-ctx.Done()
	})
	call, end := context.WithCancel(t.Context())
	ts.enter(call, thePool, "u", noon)
	end()
	life := <-served
	if life.Err() != nil {
		t.Error("what serves the table ended with the reconcile that began it")
	}
	ts.close()
	if life.Err() == nil {
		t.Error("what serves the table goes on after close")
	}
}

func TestChangesOfATableWakeItsPoolAtOnceAndThenInMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken atomic.Int64 // the pool is woken on a goroutine of its own
		ts := newTenures(router.NewPools(), func(_ context.Context, key types.NamespacedName) {
			if key != thePool {
				t.Errorf("woke %v", key)
			}
			woken.Add(1)
		}, untilDone)
		defer ts.close()
		tenure := ts.enter(t.Context(), thePool, "u", time.Now())
		change := func() { // what is Gone was a member: that is news
			fleet := router.Fleet{Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
				Members: []router.Member{{Name: "a", Incarnation: "i", URL: "http://a"}}}
			if err := tenure.table.Apply(fleet, time.Now()); err != nil {
				t.Fatal(err)
			}
			tenure.table.Gone([]router.Incarnation{"i"}, time.Now())
		}
		change()
		synctest.Wait()
		if woken.Load() != 1 {
			t.Fatalf("woken %d times, want once at once", woken.Load())
		}
		for range 20 {
			change()
			synctest.Wait()
		}
		if woken.Load() != 1 {
			t.Errorf("woken %d times within the pause, want not again", woken.Load())
		}
		pause := time.NewTimer(wakePause)
		<-pause.C
		synctest.Wait()
		if woken.Load() != 2 {
			t.Errorf("woken %d times after the pause, want once more", woken.Load())
		}
	})
}

func TestBuriedLivesStayUntilAReconcileHasSeenThem(t *testing.T) {
	tenure := &tenure{table: router.NewTable("u", nil, noon), ended: map[router.Incarnation]struct{}{}}
	tenure.bury([]router.Incarnation{"a", "b"}, noon)
	seen := tenure.buried()
	tenure.bury([]router.Incarnation{"c"}, noon) // while the reconcile is under way
	tenure.settle(seen)
	if left := tenure.buried(); len(left) != 1 {
		t.Errorf("%v is left, want c alone", left)
	}
}

// Who is deposed may lead again, and clients of the terms between may have to do with what ended before.
func TestATenureBegunAnewKnowsTheProcessesThatHaveEnded(t *testing.T) {
	ts := newTenures(router.NewPools(), func(context.Context, types.NamespacedName) {}, untilDone)
	defer ts.close()
	first := ts.enter(t.Context(), thePool, "u", noon)
	fleet := router.Fleet{Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Members: []router.Member{{Name: "a", Incarnation: "a/1", URL: "http://a"}}}
	if err := first.table.Apply(fleet, noon); err != nil {
		t.Fatal(err)
	}
	first.bury([]router.Incarnation{"a/1", "b/1"}, noon)
	ts.again(t.Context(), first, noon)
	table := ts.get(thePool).table
	fleet.Members = nil
	if err := table.Apply(fleet, noon); err != nil {
		t.Fatal(err)
	}
	table.Lead(3, router.Takeover{Windows: time.Minute}, noon)
	for _, life := range []router.Incarnation{"a/1", "b/1"} {
		token := router.Claim{Pool: "u", Request: router.RequestID("on-" + life), RID: router.RID(life), Backend: "a", Incarnation: life,
			Session: "s", Sender: "train", Executions: 1, Epoch: 1, Term: 2}
		end, err := table.Release(token, router.Ambiguous, router.Reply{}, noon)
		if err != nil || end.Fate != router.FateDead {
			t.Errorf("a late token of %s, which has ended, is answered %+v, %v", life, end, err)
		}
	}
}

func TestTenureIsConcernedByWhatItSelectsAndWhatItCountsOn(t *testing.T) {
	tenure := &tenure{}
	if tenure.concerns("uid", labels.Set{"app": "sglang"}) {
		t.Error("a pool that selects nothing is concerned")
	}
	tenure.watch(labels.SelectorFromSet(labels.Set{"app": "sglang"}), map[types.UID]struct{}{"counted": {}})
	for name, c := range map[string]struct {
		uid  types.UID
		set  labels.Set
		want bool
	}{
		"a selected pod":                  {"x", labels.Set{"app": "sglang", "role": "rollout"}, true},
		"a pod of others":                 {"x", labels.Set{"app": "other"}, false},
		"one that was selected, and uses": {"counted", labels.Set{"app": "other"}, true},
	} {
		if got := tenure.concerns(c.uid, c.set); got != c.want {
			t.Errorf("%s: concerned %t, want %t", name, got, c.want)
		}
	}
}

func TestProbeOfAPoolThatIsGoneIsDropped(t *testing.T) {
	defer goleak.VerifyNone(t)
	ts := newTenures(router.NewPools(), func(context.Context, types.NamespacedName) {}, untilDone)
	defer ts.close()
	tenure := ts.enter(t.Context(), thePool, "u", noon)
	fleet := router.Fleet{Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Members: []router.Member{{Name: "a", Incarnation: "i", URL: "http://a", Capacity: 1}}}
	if err := tenure.table.Apply(fleet, noon); err != nil {
		t.Fatal(err)
	}
	ts.Observe(prober.Observation{Key: prober.Key{Pool: "another", Incarnation: "i"}, Seq: 1, Verdict: prober.Healthy, At: noon})
	if got := tenure.table.Snapshot(noon).Backends[0].Health; got != router.HealthUnknown {
		t.Errorf("health %q by a probe of another pool", got)
	}
	ts.Observe(prober.Observation{Key: prober.Key{Pool: "u", Incarnation: "i"}, Seq: 1, Verdict: prober.Healthy, At: noon})
	if got := tenure.table.Snapshot(noon).Backends[0].Health; got != router.Healthy {
		t.Errorf("health %q, want Healthy", got)
	}
}

func TestOriginsTellOldEnginesAndThoseOfOthers(t *testing.T) {
	o := newOrigins()
	o.met([]router.Incarnation{"old"})
	if !o.isOld("old") || o.isOld("young") {
		t.Error("old and young engines are confused")
	}
	if o.servedOther("e", "one") {
		t.Error("an engine that nobody used served another")
	}
	o.serve("e", "one")
	if o.servedOther("e", "one") || !o.servedOther("e", "two") {
		t.Error("an engine's pool and another are confused")
	}
	o.forget([]router.Incarnation{"old", "e"})
	if o.isOld("old") || o.servedOther("e", "two") {
		t.Error("what has ended is remembered")
	}
}

func TestAPoolOfTheSameNameThatIsBeingDeletedEndsWhatTheOneBeforeHad(t *testing.T) {
	ts := newTenures(router.NewPools(), func(context.Context, types.NamespacedName) {}, untilDone)
	defer ts.close()
	r := &Reconciler{tenures: ts, claims: newClaims(), keyring: newKeyring(), desk: newDesk(nil, nil), prober: &toldProbes{}}
	defer r.desk.close()
	for leaving, forgotten := range map[types.UID]bool{"one": false, "another": true} {
		ts.enter(t.Context(), thePool, "one", noon)
		r.keyring.put("one", credentials{secret: "keys"})
		pool := &v1alpha1.InferencePool{}
		pool.UID = leaving
		r.leave(t.Context(), &world{key: thePool, leaving: pool})
		if got := r.keyring.get("one").secret == ""; got != forgotten {
			t.Errorf("pool %s leaves: the keys of pool one are forgotten: %t, want %t", leaving, got, forgotten)
		}
	}
}
