package router

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestStateKeepsEveryPromise runs random interleavings of all that clients, engines, the
// operator and time can do, and after each step holds the table against its invariants and
// against a world that knows what really runs.
func TestStateKeepsEveryPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
	})
}

// TestNothingIsCountedForEver ends every such history with a world in which clients, engines
// and the operator do what they can: then every count is zero and nobody waits.
func TestNothingIsCountedForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		w.comeToRest()
	})
}

// actions are the steps of a history, each as often as its number says.
func (w *world) actions() map[string]func(*rapid.T) {
	out := map[string]func(*rapid.T){"": func(*rapid.T) { w.check() }}
	for _, a := range []struct {
		name  string
		often int
		do    func()
	}{
		{"acquire", 10, w.acquire}, {"acquire again", 3, w.steadily(w.askAgain)}, {"acquire as another", 1, w.askAsAnother},
		{"forget the token", 1, w.forgetToken}, {"renew", 4, w.steadily(w.renew)}, {"write", 8, w.write}, {"finish", 4, w.finish},
		{"release", 8, w.steadily(w.release)}, {"release again", 2, w.steadily(w.releaseAgain)}, {"forgo", 2, w.forgo}, {"forgo what runs", 2, w.forgoUnderway}, {"end session", 1, w.endSession},
		{"collect", 5, w.collect}, {"hang up", 1, w.hangUp}, {"lose rights", 2, w.loseRights},
		{"ask engines", 8, w.askEngines}, {"deliver", 12, w.deliver}, {"pause by abort", 1, w.pauseByAbort}, {"close", 2, w.close},
		{"refuse", 1, w.refuseConnection}, {"kill", 1, w.kill}, {"vouch", 2, w.vouch}, {"bury", 1, w.bury}, {"probe", 10, w.probe}, {"everyone is well", 4, w.everyoneIsWell},
		{"operate", 7, w.operate}, {"raise epoch", 1, w.raiseEpoch}, {"nonsense", 1, w.offerNonsense},
		{"record", 3, w.record}, {"take over", 1, w.takeOver}, {"leadership", 1, w.leadership}, {"time", 8, w.pass},
	} {
		for i := range a.often {
			out[fmt.Sprintf("%s/%d", a.name, i)] = func(t *rapid.T) {
				w.t = t
				a.do()
			}
		}
	}
	return out
}

// everyoneIsWell is a round of probes that all succeed, so that histories do not starve.
func (w *world) everyoneIsWell() {
	w.meet()
	for _, inc := range w.incarnations() {
		if e := w.engines[inc]; e.state == engineAlive {
			e.seq++
			w.observe(e, Observation{Incarnation: inc, Seq: e.seq, Health: Healthy, Version: e.version, EngineTotal: -1})
		}
	}
}

// check is what must hold after every step.
func (w *world) check() {
	w.meet()
	if err := w.tab.state.check(); err != nil {
		w.t.Fatal(err)
	}
	w.checkCounted()
	w.checkEnded()
	w.checkClaims()
	w.checkFailure()
	w.checkWaiters()
	w.checkServed()
	w.checkTraces()
	w.checkPlacesOfSettling()
}

// checkCounted, R4 and R5: nothing that runs, or may still be written, is uncounted, unless an
// earlier term granted it and its incarnation has unknown load.
func (w *world) checkCounted() {
	s := w.tab.state
	for _, c := range w.calls {
		if !w.mayRun(c) || w.counted(c) {
			continue
		}
		b := s.backends[c.token.Incarnation]
		if c.token.Term < w.term && (b == nil || b.settling.unknown) {
			continue
		}
		w.t.Fatalf("R5: %s on %s may run and is not counted (work %d, over %v, %q)", c.req.ID, c.token.Incarnation, c.work, c.over, c.outcome)
	}
}

// checkEnded, 5.3 (b): on a process whose end the table was told of, met or not, nothing is counted or
// feared, whatever tokens say of it.
func (w *world) checkEnded() {
	for inc := range w.vouched {
		if b := w.tab.state.backends[inc]; b != nil && (b.outstanding != 0 || b.settling.unknown || b.isolation != notIsolated) {
			w.t.Fatalf("R5: %s has ended, and %d are counted there, unknown load: %v", inc, b.outstanding, b.settling.unknown)
		}
	}
}

// mayRun: it runs, or its client may still write it.
func (w *world) mayRun(c *call) bool {
	return c.token != nil && w.engines[c.token.Incarnation].state == engineAlive &&
		(c.work == workRunning || c.mayWrite(w.now))
}

func (w *world) counted(c *call) bool {
	b := w.tab.state.backends[c.token.Incarnation]
	if b == nil {
		return false
	}
	for _, l := range []*list[lease]{&b.active, &b.held} {
		for v := range l.all {
			if v.rid == c.token.RID {
				return true
			}
		}
	}
	return false
}

// checkClaims, R7 and R8: what the table calls fenced or drained is so.
func (w *world) checkClaims() {
	snap := w.tab.Snapshot(w.now)
	for _, c := range w.calls {
		if !w.mayRun(c) {
			continue
		}
		for _, b := range snap.Backends {
			if b.Incarnation == c.token.Incarnation && b.Drained {
				w.t.Fatalf("R8: %s is called drained while %s may run there", b.Incarnation, c.req.ID)
			}
		}
		for _, v := range snap.Senders {
			if v.Name == c.req.Sender && v.Fenced && w.tab.state.backends[c.token.Incarnation] != nil {
				w.t.Fatalf("R7: %s is called fenced while %s may run", v.Name, c.req.ID)
			}
		}
	}
}

// checkFailure: a pool fails on an execution that its client called Ambiguous in time.
func (w *world) checkFailure() {
	f := w.tab.Snapshot(w.now).Failure
	if f == nil || f.Request == "" {
		return
	}
	for _, c := range w.calls {
		if c.req.ID == f.Request && c.outcome == Ambiguous && !c.late {
			return
		}
	}
	w.t.Fatalf("the pool failed on %s, which nobody called Ambiguous in time", f.Request)
}
