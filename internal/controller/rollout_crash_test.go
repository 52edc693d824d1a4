package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
)

// tinEngine is an engine as its operator sees it.
type tinEngine struct {
	paused  v1alpha1.PauseMode
	version string
	path    string
}

// obey does what an order says.
func (e *tinEngine) obey(o order) rollout.Version {
	switch o.kind {
	case orderPause, orderRepause:
		if e.paused == "" || o.kind == orderRepause {
			e.paused = o.mode
		}
	case orderContinue:
		e.paused = ""
	case orderUpdate:
		e.version, e.path = string(o.version), o.path
	case orderStamp:
		e.version = string(o.version)
	case orderVerify, orderNone:
	}
	return rollout.Version(e.version)
}

// errCrash is the end of the process in the middle of what it does.
var errCrash = errors.New("the process ends")

// stage is a pool of tin engines and a process that reconciles it. What outlives the process are the
// engines and pool, the object of the API server.
type stage struct {
	t       *testing.T
	now     time.Time
	pool    *v1alpha1.InferencePool
	engines map[router.Incarnation]*tinEngine
	// steps counts what was done so far that a crash can come before; the process ends at crashAt. 0:
	// never.
	steps, crashAt int

	table    *router.Table
	standing standing
	memory   map[router.Incarnation]engineMemory
	told     toldRollout
	quiet    map[router.Incarnation]struct{} // what the prober was told to leave alone
	verdicts map[string]prober.Observation
	ticks    uint64 // outlives the process: time goes on
}

func newStage(t *testing.T, how func(*v1alpha1.WeightsSpec)) *stage {
	s := &stage{t: t, now: noon, engines: map[router.Incarnation]*tinEngine{}}
	w := worldWith()
	s.pool = w.pool
	s.pool.Status.Term = 0
	s.pool.Status.Weights = &v1alpha1.WeightsStatus{Published: "v1", PublishedPath: "/v1", Target: "v1"}
	s.pool.Spec.Weights = &v1alpha1.WeightsSpec{Version: "v2", Source: v1alpha1.WeightsDisk, Path: "/v2"}
	how(s.pool.Spec.Weights)
	for _, name := range []string{"a", "b", "c"} {
		s.engines[running(name).incarnation] = &tinEngine{version: "v1", path: "/v1"}
	}
	s.boot()
	return s
}

// boot starts a process that knows nothing but what the API server does.
func (s *stage) boot() {
	s.table = router.NewTable("pool", nil, s.now)
	s.standing, s.memory, s.told = standingNew, map[router.Incarnation]engineMemory{}, toldRollout{}
	s.quiet, s.verdicts = map[router.Incarnation]struct{}{}, map[string]prober.Observation{}
}

// step is a moment before which the process may end.
func (s *stage) step() error {
	s.steps++
	if s.steps == s.crashAt {
		return errCrash
	}
	return nil
}

// probe is what the prober finds out in a second.
func (s *stage) probe() {
	s.ticks++
	for life, engine := range s.engines {
		o := s.verdicts[string(life)]
		o.Incarnation, o.Seq, o.At, o.Capacity = string(life), s.ticks, s.now, 8
		_, rests := s.quiet[life]
		switch {
		case rests:
			o.VersionConfirmed = false
		case engine.paused != "":
			o.Verdict, o.VersionConfirmed = prober.SuspectedPaused, false
		default:
			o.Verdict, o.VersionConfirmed, o.WeightVersion = prober.Healthy, true, engine.version
		}
		s.verdicts[string(life)] = o
		s.table.Observe(observationOf(o), s.now)
	}
}

// settle does what the table needs asked of engines: nothing ever runs on these.
func (s *stage) settle() {
	for _, chore := range s.table.Chores(s.now) {
		if s.engines[chore.Incarnation].paused == "" && chore.ReadLoads {
			s.table.LoadsRead(chore.Incarnation, chore.Stamp, []router.RankLoad{{Clock: float64(s.ticks)}}, s.now)
		}
	}
}

// look is what a reconcile sees.
func (s *stage) look() world {
	w := worldWith(running("a"), running("b"), running("c"))
	w.pool = s.pool
	w.standing, w.term, w.origin = s.standing, s.pool.Status.Term, originTakenOver
	w.engines, w.told, w.verdicts = maps.Clone(s.memory), s.told, maps.Clone(s.verdicts)
	w.snapshot = s.table.Snapshot(s.now)
	return w
}

// round is one second of a process's life: probes, settling, and a reconcile.
func (s *stage) round() error {
	s.now = s.now.Add(time.Second)
	s.probe()
	s.settle()
	w := s.look()
	p := decide(w, s.now)
	if err := s.record(&p); err != nil {
		return err
	}
	if p.course == courseLead {
		s.table.Lead(router.Term(p.term), router.Takeover{Windows: 30 * time.Second}, s.now)
		s.standing = standingLeads
	}
	if err := s.step(); err != nil {
		return err
	}
	if err := s.table.Apply(p.fleet, s.now); err != nil {
		s.t.Fatal(err)
	}
	s.told, s.quiet = p.told(), p.pausedLives()
	return s.tell(&p)
}

// record writes the facts, if they are others.
func (s *stage) record(p *plan) error {
	status := withFacts(&s.pool.Status, p, s.now)
	if fmt.Sprint(status) == fmt.Sprint(&s.pool.Status) {
		return nil
	}
	if err := s.step(); err != nil {
		return err
	}
	s.pool = s.pool.DeepCopy()
	s.pool.Status = *status
	return nil
}

// tell gives the orders. The process may end before the engine hears of one, and before it hears the
// answer.
func (s *stage) tell(p *plan) error {
	for i := range p.berths {
		b := &p.berths[i]
		if b.engine.order.kind == orderNone {
			continue
		}
		s.mustBeRight(b)
		s.memory[b.incarnation] = s.memory[b.incarnation].began(b.engine.order)
		if err := s.step(); err != nil {
			return err
		}
		read := s.engines[b.incarnation].obey(b.engine.order)
		if b.engine.order.mode == v1alpha1.PauseAbort && b.engine.order.first == first {
			s.table.PauseAborted(b.incarnation, s.now, s.now)
		}
		if err := s.step(); err != nil {
			return err
		}
		s.memory[b.incarnation] = s.memory[b.incarnation].answered(read, nil, s.now)
	}
	return nil
}

// mustBeRight: no order without its fact, none that the router could grant against.
func (s *stage) mustBeRight(b *berth) {
	entry := find(s.pool.Status.Backends, b.name, string(b.incarnation))
	o := b.engine.order
	switch o.kind {
	case orderPause, orderRepause, orderContinue:
		if entry == nil || !pausedIn(entry).asked() {
			s.t.Fatalf("%s without a fact of the pause", o.kind)
		}
	case orderUpdate:
		if entry == nil || entry.Updating != string(o.version) {
			s.t.Fatalf("update to %s without a fact of it", o.version)
		}
	case orderNone, orderStamp, orderVerify:
		return
	}
	for _, seen := range s.table.Snapshot(s.now).Backends {
		if seen.Incarnation == b.incarnation && seen.Admissible {
			s.t.Fatalf("%s on %s while leases are granted there", o.kind, b.name)
		}
	}
}

// done reports whether the pool is where it was to go, and nothing is left behind.
func (s *stage) done() bool {
	snapshot := s.table.Snapshot(s.now)
	status := &s.pool.Status
	if snapshot.Published != "v2" || snapshot.Leasing != router.LeasingOpen || status.Weights == nil || status.Weights.Published != "v2" {
		return false
	}
	for i := range status.Backends {
		if hasEngineFacts(&status.Backends[i]) {
			return false
		}
	}
	for i := range snapshot.Backends {
		if !snapshot.Backends[i].Admissible {
			return false
		}
	}
	return !slices.ContainsFunc(slices.Collect(maps.Values(s.engines)), func(e *tinEngine) bool {
		return e.paused != "" || e.version != "v2" || e.path != "/v2"
	})
}

// play lets the process run, and another after its end, until the pool is done.
func (s *stage) play() {
	for range 400 {
		if err := s.round(); err != nil {
			s.boot()
		}
		if s.done() {
			return
		}
	}
	w := s.look()
	p := decide(w, s.now)
	s.t.Fatalf("not done after 400 s and %d steps: %+v; the router: %+v", s.steps, p.weights.rollout, s.table.Snapshot(s.now).Backends)
}

// strategies are all the ways from disk.
var strategies = map[string]func(*v1alpha1.WeightsSpec){
	"all at once, drained":   func(w *v1alpha1.WeightsSpec) { w.Clearing = v1alpha1.ClearDrain },
	"all at once, aborted":   func(w *v1alpha1.WeightsSpec) { w.Clearing = v1alpha1.ClearAbort },
	"all at once, retracted": func(w *v1alpha1.WeightsSpec) { w.Clearing = v1alpha1.ClearRetract },
	"all at once, in place":  func(w *v1alpha1.WeightsSpec) { w.Clearing = v1alpha1.ClearInPlace },
	"by turns":               func(w *v1alpha1.WeightsSpec) { w.Strategy = v1alpha1.RolloutRolling },
	"in place":               func(w *v1alpha1.WeightsSpec) { w.Strategy = v1alpha1.RolloutInPlace },
	"two by turns": func(w *v1alpha1.WeightsSpec) {
		two := intstr.FromInt32(2)
		w.Strategy, w.MaxUnavailable = v1alpha1.RolloutRolling, &two
	},
}

func TestARolloutEndsTheSameWhereverItsProcessEnds(t *testing.T) {
	for name, how := range strategies {
		t.Run(name, func(t *testing.T) {
			whole := newStage(t, how)
			whole.play()
			if whole.steps < 15 {
				t.Fatalf("only %d steps: there is nothing to interrupt", whole.steps)
			}
			for at := 1; at <= whole.steps; at++ {
				s := newStage(t, how)
				s.crashAt = at
				s.play()
				if t.Failed() {
					t.Fatalf("after a crash at step %d of %d", at, whole.steps)
				}
			}
			t.Logf("%d crash points", whole.steps)
		})
	}
}
