package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// noon is when everything here happens.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// worldWith is a world that this process leads under term 3, over the given pods.
func worldWith(pods ...sighting) world {
	pool := &v1alpha1.InferencePool{
		ObjectMeta: metav1.ObjectMeta{Name: "policy", Namespace: "rl", UID: "pool", Generation: 1},
		Spec: v1alpha1.InferencePoolSpec{
			Backends: v1alpha1.BackendsSpec{
				Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "sglang"}}, Port: 30000,
			},
			Senders: []v1alpha1.SenderSpec{{Name: "train"}},
		},
		Status: v1alpha1.InferencePoolStatus{Term: 3, StartSecondsHighWater: 30},
	}
	return world{
		key: types.NamespacedName{Namespace: "rl", Name: "policy"}, pool: pool,
		standing: standingLeads, origin: originTakenOver, term: 3, pods: pods,
		ended:       map[router.Incarnation]struct{}{},
		servedOther: func(string) bool { return false },
		old:         func(router.Incarnation) bool { return false },
	}
}

// running is a healthy pod in its first life.
func running(name string) sighting {
	incarnation := router.Incarnation(name + "-uid/" + name + "-0")
	return sighting{
		name: name, incarnation: incarnation, engineKey: string(incarnation),
		url: "http://" + name + ":30000", process: processLives,
	}
}

func TestDecideLeavesAPoolThatIsNotThere(t *testing.T) {
	if got := decide(world{}, noon); got.course != courseLeave {
		t.Errorf("course %d, want to leave", got.course)
	}
}

func TestDecideRaisesTheTermBeforeItServes(t *testing.T) {
	w := worldWith(running("a"))
	w.standing, w.term = standingNew, 0
	got := decide(w, noon)
	if got.course != courseLead || got.term != 4 {
		t.Errorf("course %d to term %d, want to lead to term 4", got.course, got.term)
	}
}

func TestDecideYieldsToAHigherTerm(t *testing.T) {
	higher := worldWith(running("a"))
	higher.pool.Status.Term = 4
	deposed := worldWith(running("a"))
	deposed.standing = standingDeposed
	for name, w := range map[string]world{"a higher term in the status": higher, "deposed before": deposed} {
		if got := decide(w, noon); got.course != courseYield {
			t.Errorf("%s: course %d, want to yield", name, got.course)
		}
	}
}

func TestDecideJudgesTheLoadOfAnEngineByWhereItComesFrom(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   router.Load
	}{
		"an engine that began after this process":  {func(*world) {}, router.LoadNone},
		"an engine that is older than the process": {func(w *world) { w.old = func(router.Incarnation) bool { return true } }, router.LoadUnknown},
		"any engine at the moment of a take-over":  {func(w *world) { w.standing = standingNew }, router.LoadUnknown},
		"an engine that served another pool":       {func(w *world) { w.servedOther = func(string) bool { return true } }, router.LoadUnknown},
		"an old engine in a pool's first term": {func(w *world) {
			w.origin = originFirst
			w.old = func(router.Incarnation) bool { return true }
		}, router.LoadNone},
		"any engine when the first term begins": {func(w *world) {
			w.standing, w.pool.Status.Term = standingNew, 0
		}, router.LoadNone},
		"an engine of another pool in a first term": {func(w *world) {
			w.origin = originFirst
			w.servedOther = func(string) bool { return true }
		}, router.LoadUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldWith(running("a"))
			c.change(&w)
			if got := decide(w, noon).fleet.Members[0].Load; got != c.want {
				t.Errorf("load %q, want %q", got, c.want)
			}
		})
	}
}

func TestDecideKnowsAnEngineAgainUnderAnotherName(t *testing.T) {
	old := stray{name: "old", incarnation: "endpoint:old/1", url: "http://x:1"}
	for name, c := range map[string]struct {
		url    v1alpha1.EndpointURL
		change func(*world)
		want   router.Load
	}{
		"the engine of a name that is gone":     {"http://x:1/", func(*world) {}, router.LoadUnknown},
		"another engine":                        {"http://y:1", func(*world) {}, router.LoadNone},
		"the engine of a pod that was selected": {"http://x:1", func(w *world) { w.strays[0].incarnation = "uid/0" }, router.LoadUnknown},
		"an address whose engine is said to be gone": {"http://x:1", func(w *world) {
			w.pool.Spec.ConfirmedGone = []v1alpha1.Incarnation{"endpoint:old/1"}
		}, router.LoadNone},
		"the address of a pod that has ended": {"http://x:1", func(w *world) {
			w.strays[0].incarnation, w.strays[0].fate = "uid/0", fateEnded
		}, router.LoadNone},
		"its own engine": {"http://x:1", func(w *world) { w.strays[0].incarnation = "endpoint:new/2" }, router.LoadNone},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldWith()
			w.origin, w.strays = originFirst, []stray{old}
			w.pool.Spec.Backends = v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "new", URL: c.url}}}
			w.pool.Status.Lives = 1
			c.change(&w)
			if got := decide(w, noon).fleet.Members[0].Load; got != c.want {
				t.Errorf("load %q, want %q", got, c.want)
			}
		})
	}
	w := worldWith(running("a"))
	w.strays = []stray{{name: "b", incarnation: "b-uid/b-0", url: running("a").url, fate: fateMissing}}
	if got := decide(w, noon).fleet.Members[0].Load; got != router.LoadNone {
		t.Error("a new pod at the address of one that is gone is taken for it")
	}
}

func TestDecideHandsOverOnlyLivingProcesses(t *testing.T) {
	waiting := sighting{name: "waiting", unusable: v1alpha1.ReasonStarting}
	another := sighting{name: "another", unusable: v1alpha1.ReasonStarting}
	dead := running("dead")
	dead.process = processEnded
	vouched, heard := running("vouched"), running("heard")
	w := worldWith(running("a"), waiting, another, dead, vouched, heard)
	w.pool.Spec.ConfirmedGone = []v1alpha1.Incarnation{v1alpha1.Incarnation(vouched.incarnation)}
	w.ended[heard.incarnation] = struct{}{}
	got := decide(w, noon)
	if len(got.fleet.Members) != 1 || got.fleet.Members[0].Name != "a" {
		t.Errorf("members %v, want a alone", got.fleet.Members)
	}
	if len(got.targets) != 1 || got.targets[0].Incarnation != string(running("a").incarnation) {
		t.Errorf("targets %v, want a alone", got.targets)
	}
	reasons := map[string]v1alpha1.BackendReason{}
	for _, b := range got.berths {
		reasons[b.name] = b.unusable
	}
	want := map[string]v1alpha1.BackendReason{
		"a": "", "waiting": v1alpha1.ReasonStarting, "another": v1alpha1.ReasonStarting,
		"dead": v1alpha1.ReasonProcessEnded, "vouched": v1alpha1.ReasonProcessEnded, "heard": v1alpha1.ReasonProcessEnded,
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	gone := map[router.Incarnation]bool{}
	for _, life := range got.gone {
		gone[life] = true
	}
	if !gone[vouched.incarnation] || !gone[heard.incarnation] {
		t.Errorf("gone %v, want those vouched for and heard of", got.gone)
	}
}

func TestDecideProbesWhatItDoesNotUseYet(t *testing.T) {
	unready := running("a")
	unready.unusable = v1alpha1.ReasonPodNotReady
	got := decide(worldWith(unready), noon)
	if len(got.targets) != 1 {
		t.Errorf("%d targets, want 1", len(got.targets))
	}
	if got.fleet.Members[0].Excluded != string(v1alpha1.ReasonPodNotReady) {
		t.Errorf("excluded for %q, want PodNotReady", got.fleet.Members[0].Excluded)
	}
}

func TestDecideIntroducesAStrayThatTheRouterMustKnowOtherwise(t *testing.T) {
	lost := stray{name: "lost", incarnation: "lost-uid/lost-0", url: "http://lost:30000", fate: fateMissing}
	known := func(url string) router.Snapshot {
		return router.Snapshot{Backends: []router.BackendSnapshot{{Name: "lost", Incarnation: lost.incarnation, URL: url}}}
	}
	for name, c := range map[string]struct {
		snapshot router.Snapshot
		want     []router.Member
	}{
		"met by an earlier term only": {router.Snapshot{}, []router.Member{{
			Name: "lost", Incarnation: lost.incarnation, Load: router.LoadUnknown, Excluded: string(v1alpha1.ReasonPodMissing),
		}}},
		"known by an address that is not its own any more": {known(lost.url), []router.Member{{
			Name: "lost", Incarnation: lost.incarnation, Load: router.LoadUnknown, Excluded: string(v1alpha1.ReasonPodMissing),
		}}},
		"known without an address": {known(""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldWith(running("a"))
			w.strays, w.snapshot = []stray{lost}, c.snapshot
			got := decide(w, noon)
			if diff := cmp.Diff(c.want, got.introduced); diff != "" {
				t.Errorf("introduced (-want +got):\n%s", diff)
			}
			if len(got.fleet.Members) != 1 {
				t.Errorf("%d members, want the stray not to be one", len(got.fleet.Members))
			}
		})
	}
}

func TestDecideTellsOfEndedStraysAndForgetsThem(t *testing.T) {
	w := worldWith(running("a"))
	w.strays = []stray{{name: "old", incarnation: "old-uid/old-0", fate: fateEnded}}
	got := decide(w, noon)
	if diff := cmp.Diff([]router.Incarnation{"old-uid/old-0"}, got.gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	if len(got.berths) != 1 {
		t.Errorf("%d berths, want a alone", len(got.berths))
	}
}

func TestDecideKeepsAnIsolatedIncarnationEmpty(t *testing.T) {
	w := worldWith(running("a"))
	at := metav1.NewTime(noon.Add(-time.Hour))
	w.pool.Status.Backends = []v1alpha1.BackendStatus{{Name: "a", Incarnation: string(running("a").incarnation), IsolationStartTime: &at}}
	got := decide(w, noon).fleet.Members[0]
	if got.Drain != router.DrainMove || got.Excluded != string(v1alpha1.BackendIsolated) {
		t.Errorf("drain %q, excluded for %q; want it emptied and excluded", got.Drain, got.Excluded)
	}
}

func TestDecideChoosesTheCapacityOfThePodThenOfTheSpec(t *testing.T) {
	annotated := running("a")
	annotated.capacity = 3
	w := worldWith(annotated, running("b"))
	w.pool.Spec.Backends.Capacity = v1alpha1.CapacitySpec{Source: v1alpha1.CapacityFixed, Value: 9}
	members := decide(w, noon).fleet.Members
	if members[0].Capacity != 3 || members[1].Capacity != 9 {
		t.Errorf("capacities %d and %d, want 3 and 9", members[0].Capacity, members[1].Capacity)
	}
	w.pool.Spec.Backends.Capacity = v1alpha1.CapacitySpec{Fallback: 5}
	members = decide(w, noon).fleet.Members
	if members[1].Capacity != 0 || members[1].FallbackCapacity != 5 {
		t.Errorf("capacity %d, fallback %d; want 0 and 5", members[1].Capacity, members[1].FallbackCapacity)
	}
}

func TestDecideHoldsLeasingOnlyWhenAsked(t *testing.T) {
	for asked, want := range map[v1alpha1.Leasing]router.Leasing{
		"": router.LeasingOpen, v1alpha1.LeasingOpen: router.LeasingOpen, v1alpha1.LeasingHeld: router.LeasingHeld,
	} {
		w := worldWith(running("a"))
		w.pool.Spec.Leasing = asked
		if got := decide(w, noon).fleet.Leasing; got != want {
			t.Errorf("asked for %q: %q, want %q", asked, got, want)
		}
	}
}

func TestDecideHandsOverWhatTheSpecAsksOfTheRouter(t *testing.T) {
	w := worldWith(running("a"))
	w.pool.Spec.Routing = v1alpha1.RoutingSpec{Policy: v1alpha1.PolicyConsistentHash, AdmissionPercent: 90}
	if diff := cmp.Diff(configOf(&w.pool.Spec), decide(w, noon).fleet.Config); diff != "" {
		t.Errorf("config (-spec +fleet):\n%s", diff)
	}
}

func TestDecideNeverLowersTheHighWaterOfStartWindows(t *testing.T) {
	w := worldWith(running("a"))
	w.pool.Spec.Leases.StartSeconds = 10
	if got := decide(w, noon).startSeconds; got != 30 {
		t.Errorf("%d s, want the 30 s of before", got)
	}
	w.pool.Spec.Leases.StartSeconds = 45
	if got := decide(w, noon).startSeconds; got != 45 {
		t.Errorf("%d s, want 45 s", got)
	}
}

func TestDecideLooksAgainAtTheNextDeadline(t *testing.T) {
	w := worldWith(running("a"), running("b"))
	w.pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "a", DeadlineSeconds: 90}, {Backend: "b", DeadlineSeconds: 60}}
	if got, want := decide(w, noon).deadline, noon.Add(time.Minute); !got.Equal(want) {
		t.Errorf("deadline %v, want %v", got, want)
	}
}

func TestDecideIsAFunctionOfWhatItIsGiven(t *testing.T) {
	w := worldWith(running("a"), running("b"))
	w.strays = []stray{{name: "lost", incarnation: "lost-uid/lost-0", fate: fateMissing}}
	w.pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "a"}, {Backend: "nobody"}}
	before := w.pool.DeepCopy()
	first, second := decide(w, noon), decide(w, noon)
	opts := cmp.Options{cmp.AllowUnexported(plan{}, berth{}, sighting{}, drain{}, drainCause{}, engineWork{}, order{}, pause{}), cmpopts.EquateComparable()}
	if diff := cmp.Diff(first.fleet, second.fleet, opts); diff != "" {
		t.Errorf("two fleets of one world (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first.berths, second.berths, opts); diff != "" {
		t.Errorf("two lists of berths of one world (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, w.pool); diff != "" {
		t.Errorf("the pool was changed (-before +after):\n%s", diff)
	}
}
