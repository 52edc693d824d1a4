package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

var (
	unpaused  = pause{}
	aborting  = pause{v1alpha1.PausedByEngineMode, v1alpha1.PauseAbort}
	inPlacing = pause{v1alpha1.PausedByEngineMode, v1alpha1.PauseInPlace}
	goingOn   = order{kind: orderContinue}
)

func pausing(p pause, f firstness) order { return order{kind: orderPause, mode: p.mode, first: f} }

// equalWork compares what is done about engines.
var equalWork = cmp.AllowUnexported(engineWork{}, order{}, pause{})

func TestWorkOnAnEngineFollowsFromTheFactAndWhatItAnswered(t *testing.T) {
	failed := engineMemory{}.began(pausing(aborting, first)).answered("", errors.New("x"), noon)
	for name, c := range map[string]struct {
		sight engineSight
		want  engineWork
	}{
		"nothing wanted, nothing recorded": {engineSight{verdict: prober.Healthy}, engineWork{}},
		"a pause is recorded with its order and before it": {
			engineSight{wanted: aborting, verdict: prober.Healthy},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendPausing, order: pausing(aborting, first)},
		},
		"an engine where nobody listens yet is left to its start": {
			engineSight{wanted: aborting, verdict: prober.Refused},
			engineWork{mode: router.EnginePaused, delay: delayUnserving},
		},
		"and for as long as that takes": {
			engineSight{wanted: aborting, verdict: prober.Unhealthy},
			engineWork{mode: router.EnginePaused, delay: delayUnserving},
		},
		"an engine that somebody else paused is left alone, and gets no leases": {
			engineSight{wanted: aborting, verdict: prober.SuspectedPaused},
			engineWork{mode: router.EnginePaused, delay: delayOthers},
		},
		"an engine of which nobody knows yet is probed first": {
			engineSight{wanted: aborting, verdict: prober.Unknown},
			engineWork{mode: router.EnginePaused, delay: delayUnserving},
		},
		"a recorded pause whose answer nobody remembers is ordered again": {
			engineSight{wanted: aborting, recorded: aborting, verdict: prober.SuspectedPaused},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendPausing, order: pausing(aborting, again)},
		},
		"an order under way is waited for": {
			engineSight{wanted: aborting, recorded: aborting, memory: engineMemory{}.began(pausing(aborting, first))},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendPausing},
		},
		"an order that failed waits": {
			engineSight{wanted: aborting, recorded: aborting, memory: failed},
			engineWork{
				paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendPausing,
				fault: "pause: the connection was cut", retryAt: noon.Add(firstRetry),
			},
		},
		"a pause that is answered stays": {
			engineSight{wanted: aborting, recorded: aborting, memory: engineMemory{paused: aborting.mode}},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendPaused},
		},
		"what is not wanted any more goes on, and the fact stays until it has answered": {
			engineSight{recorded: aborting, memory: engineMemory{paused: aborting.mode}},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendContinuing, order: goingOn},
		},
		"the failure of a pause does not hold up its end": {
			engineSight{recorded: aborting, memory: failed},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendContinuing, order: goingOn},
		},
		"after the answer the fact goes": {
			engineSight{recorded: aborting, memory: engineMemory{continued: true}},
			engineWork{},
		},
		"another mode is reached by way of running": {
			engineSight{wanted: inPlacing, recorded: aborting, memory: engineMemory{paused: aborting.mode}},
			engineWork{paused: aborting, mode: router.EnginePaused, state: v1alpha1.BackendContinuing, order: goingOn},
		},
		"and paused anew from there": {
			engineSight{wanted: inPlacing, recorded: aborting, memory: engineMemory{continued: true}, verdict: prober.Healthy},
			engineWork{paused: inPlacing, mode: router.EnginePaused, state: v1alpha1.BackendPausing, order: pausing(inPlacing, first)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, workOn(c.sight, noon), equalWork); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The life of one engine under changing wishes, lost answers and restarts of this process at any
// moment: it is never paused unrecorded, nobody else's pause is ended, and once wishes rest it is as
// wished.
func TestAnEngineEndsAsWishedWhateverIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var recorded, wanted pause
		var memory engineMemory
		engine := v1alpha1.PauseMode("")
		now := noon
		round := func(lossy bool) engineWork {
			now = now.Add(lastRetry)
			work := workOn(engineSight{wanted: wanted, recorded: recorded, verdict: prober.Healthy, memory: memory}, now)
			recorded = work.paused // the fact precedes the order
			if work.mode == router.EngineRunning && engine != "" {
				t.Fatalf("leases are granted on an engine that is paused: %s", engine)
			}
			if work.order.kind == orderNone {
				return work
			}
			memory = memory.began(work.order)
			fate := 3
			if lossy {
				fate = rapid.IntRange(0, 3).Draw(t, "fate")
			}
			if fate >= 1 { // the engine hears it
				switch work.order.kind {
				case orderPause:
					if recorded.mode != work.order.mode {
						t.Fatalf("paused in mode %s with %s on record", work.order.mode, recorded.mode)
					}
					if engine == "" {
						engine = work.order.mode
					}
				case orderContinue:
					engine = ""
				case orderNone, orderRepause, orderUpdate, orderStamp, orderVerify:
				}
			}
			switch fate {
			case 3:
				memory = memory.answered("", nil, now)
			case 0, 1:
				memory = memory.answered("", errors.New("lost"), now)
			case 2: // the process ends before the answer
				memory = engineMemory{}
			}
			return work
		}
		wishes := rapid.SampledFrom([]pause{unpaused, aborting, inPlacing})
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			if rapid.Bool().Draw(t, "wish") {
				wanted = wishes.Draw(t, "wanted")
			}
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				memory = engineMemory{}
			}
			round(true)
		}
		var last engineWork
		for range 6 {
			last = round(false)
		}
		if engine != wanted.mode || recorded != wanted || last.order.kind != orderNone {
			t.Fatalf("the engine is %q, recorded %q, wanted %q; still ordering %s", engine, recorded.mode, wanted.mode, last.order.kind)
		}
	})
}

func TestRetriesAreSpacedEverFurtherUpToABound(t *testing.T) {
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	for i, pause := range want {
		if got := retryAfter(i + 1); got != pause {
			t.Errorf("after %d failures %v, want %v", i+1, got, pause)
		}
	}
}

// pausedEntry is the status of a running pod's engine that is paused for spec.engineMode.
func pausedEntry(name string) v1alpha1.BackendStatus {
	s := running(name)
	return v1alpha1.BackendStatus{
		Name: s.name, Incarnation: string(s.incarnation), URL: s.url,
		PausedBy: aborting.by, PauseMode: aborting.mode,
	}
}

func TestDecideTakesLeasesAwayAndRecordsAPauseInOnePlan(t *testing.T) {
	w := worldWith(running("a"))
	w.pool.Spec.EngineMode = v1alpha1.EnginesPausedAbort
	w.verdicts = map[string]prober.Observation{string(running("a").incarnation): {Verdict: prober.Healthy}}
	got := decide(w, noon)
	if got.fleet.Members[0].Engine != router.EnginePaused {
		t.Error("the router is not told of the pause")
	}
	entry := withFacts(&w.pool.Status, &got, noon).Backends
	if len(entry) != 1 || entry[0].PausedBy != v1alpha1.PausedByEngineMode || entry[0].PauseMode != v1alpha1.PauseAbort || entry[0].URL == "" {
		t.Errorf("facts %+v, want the pause and the engine's address", entry)
	}
}

func TestDecideContinuesAnEngineThatLeftThePool(t *testing.T) {
	w := worldWith(running("a"))
	b := running("b")
	w.pool.Spec.EngineMode = v1alpha1.EnginesPausedAbort
	w.pool.Status.Backends = []v1alpha1.BackendStatus{pausedEntry("b")}
	w.strays = []stray{{name: "b", incarnation: b.incarnation, url: b.url, fate: fateUnselected, forgotten: true}}
	got := decide(w, noon)
	if len(got.introduced) != 0 {
		t.Error("the router is to meet an engine again on which it counts nothing")
	}
	for _, berth := range got.berths {
		if berth.name == "b" && (berth.engine.order != goingOn || !berth.engine.paused.asked()) {
			t.Errorf("work on b: %+v, want it to go on with the fact kept", berth.engine)
		}
	}
	w.engines = map[router.Incarnation]engineMemory{b.incarnation: {continued: true}}
	got = decide(w, noon)
	if entries := withFacts(&w.pool.Status, &got, noon).Backends; len(entries) == 1 && entries[0].PausedBy != "" {
		t.Error("the fact outlives the answer")
	}
}

func TestAnIncarnationWithoutAnAddressIsNoLongerPaused(t *testing.T) {
	w := worldWith()
	w.pool.Status.Backends = []v1alpha1.BackendStatus{pausedEntry("a")}
	w.strays = []stray{{name: "a", incarnation: running("a").incarnation, url: "http://a:30000", fate: fateMissing, forgotten: true}}
	got := decide(w, noon)
	if status := withFacts(&w.pool.Status, &got, noon); status.Backends[0].PausedBy != "" {
		t.Error("a pod that is gone is remembered as paused for ever")
	}
}

func TestAnEngineGoesOnOnceItsPodIsBeingDeleted(t *testing.T) {
	deleted := running("a")
	deleted.drain = drainCause{reason: v1alpha1.ReasonPodDeleted, mode: router.DrainMove}
	w := worldWith(deleted, running("b"))
	w.pool.Spec.EngineMode = v1alpha1.EnginesPausedAbort
	w.pool.Status.Backends = []v1alpha1.BackendStatus{pausedEntry("a"), pausedEntry("b")}
	w.engines = map[router.Incarnation]engineMemory{running("a").incarnation: {paused: aborting.mode}, running("b").incarnation: {paused: aborting.mode}}
	got := decide(w, noon)
	if a, b := got.berths[0].engine, got.berths[1].engine; a.order != goingOn || b.order != (order{}) || b.state != v1alpha1.BackendPaused {
		t.Errorf("a is told %v and b %v, %s; want a to go on, and b to stay paused", a.order, b.order, b.state)
	}
}

func TestAFarewellWaitsForEveryPausedEngineWithinABound(t *testing.T) {
	left := func(name string) stray {
		s := running(name)
		return stray{name: name, incarnation: s.incarnation, url: s.url, fate: fateUnselected}
	}
	leaving := &v1alpha1.InferencePool{ObjectMeta: metav1.ObjectMeta{UID: "pool"}}
	w := world{leaving: leaving, leavingSince: noon, strays: []stray{left("a"), left("b"), {name: "gone", incarnation: "c/c", url: "http://c:1", fate: fateEnded}}}
	p := decide(w, noon)
	if p.course != courseFinish || p.over || len(p.farewells) != 2 {
		t.Fatalf("course %d, over %v, %d farewells; want to finish with two", p.course, p.over, len(p.farewells))
	}
	w.engines = map[router.Incarnation]engineMemory{left("a").incarnation: {continued: true}, left("b").incarnation: engineMemory{}.began(goingOn)}
	if p = decide(w, noon); p.over || len(p.farewells) != 0 || !p.deadline.Equal(noon.Add(farewellBound)) {
		t.Errorf("over %v, %d farewells, again at %v; want to wait for b until the bound", p.over, len(p.farewells), p.deadline)
	}
	w.engines[left("b").incarnation] = engineMemory{continued: true}
	if p = decide(w, noon); !p.over {
		t.Error("both have answered, and the pool may not go")
	}
	w.engines = nil
	if p = decide(w, noon.Add(farewellBound)); !p.over || len(p.farewells) != 0 {
		t.Error("an engine that never answers holds the pool for ever")
	}
}

func TestTheEnginesConditionCountsAnswers(t *testing.T) {
	at := func(name string, work engineWork) berth { return berth{sighting: running(name), engine: work} }
	rested := engineWork{paused: aborting, state: v1alpha1.BackendPaused}
	for name, c := range map[string]struct {
		mode   v1alpha1.EngineMode
		berths []berth
		want   metav1.ConditionStatus
		reason string
		says   string
	}{
		"every engine answered": {v1alpha1.EnginesPausedAbort, []berth{at("a", rested), at("b", rested)}, metav1.ConditionTrue, v1alpha1.ReasonEnginesPaused, "2/2 engines are paused"},
		"one has not": {
			v1alpha1.EnginesPausedAbort, []berth{at("a", rested), at("b", engineWork{state: v1alpha1.BackendPausing})},
			metav1.ConditionFalse, v1alpha1.ReasonPausing, "1/2 engines are paused; waiting for: b",
		},
		"one does not serve yet": {
			v1alpha1.EnginesPausedAbort, []berth{at("a", engineWork{delay: delayUnserving})},
			metav1.ConditionFalse, v1alpha1.ReasonPausing, "0/1 engines are paused; waiting for: a",
		},
		"one is paused by others": {
			v1alpha1.EnginesPausedAbort, []berth{at("a", rested), at("b", engineWork{delay: delayOthers})},
			metav1.ConditionFalse, v1alpha1.ReasonPausedByOthers, "1/2 engines are paused; somebody else seems to have paused: b",
		},
		"one fails": {
			v1alpha1.EnginesPausedAbort, []berth{at("a", rested), at("b", engineWork{state: v1alpha1.BackendPausing, fault: "x"})},
			metav1.ConditionFalse, v1alpha1.ReasonEngineCallsFailed, "1/2 engines are paused; status.backends says what went wrong on: b",
		},
		"one has to go on still": {
			"", []berth{at("a", engineWork{state: v1alpha1.BackendContinuing}), at("b", engineWork{})},
			metav1.ConditionFalse, v1alpha1.ReasonContinuing, "1/2 engines have not answered yet that they go on",
		},
		"none is to be paused": {v1alpha1.EnginesRunning, []berth{at("a", engineWork{})}, metav1.ConditionFalse, v1alpha1.ReasonEnginesRunning, "the engines are to run"},
	} {
		t.Run(name, func(t *testing.T) {
			got := enginesCondition(c.mode, &plan{berths: c.berths})
			if got.Status != c.want || got.Reason != c.reason || got.Message != c.says {
				t.Errorf("%s/%s %q, want %s/%s %q", got.Status, got.Reason, got.Message, c.want, c.reason, c.says)
			}
		})
	}
}
