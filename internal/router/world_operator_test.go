package router

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// operate changes one thing of the spec or the cluster, and hands the fleet over.
func (w *world) operate() {
	changes := []func(){
		w.addOrReplace, w.removeMember, w.drain, w.engineMode, w.exclude, w.fixCapacity, w.access, w.access,
		w.generation, w.hold, w.publish, w.reload, w.configure, w.configure,
	}
	choose(w, "change", changes)()
	w.apply()
}

func (w *world) anyMember() *Member {
	if len(w.fleet.Members) == 0 {
		return w.addMember("a")
	}
	return &w.fleet.Members[rapid.IntRange(0, len(w.fleet.Members)-1).Draw(w.t, "member")]
}

// addOrReplace adds a backend, or a new incarnation under a name and URL that exist.
func (w *world) addOrReplace() {
	name := choose(w, "name", []BackendName{"a", "b", "c", "d", "e"})
	w.fleet.Members = slices.DeleteFunc(w.fleet.Members, func(m Member) bool { return m.Name == name })
	w.addMember(name)
}

// removeMember takes a backend out; later it may come back as it was.
func (w *world) removeMember() {
	m := *w.anyMember()
	w.fleet.Members = slices.DeleteFunc(w.fleet.Members, func(o Member) bool { return o.Incarnation == m.Incarnation })
	if oneIn(w, 2, "comes back") {
		w.apply()
		w.fleet.Members = append(w.fleet.Members, m)
	}
}

func (w *world) drain() {
	m := w.anyMember()
	m.Drain = choose(w, "drain", []Drain{NotDraining, NotDraining, DrainMove, DrainKeep, DrainAbort})
}

func (w *world) engineMode() {
	m := w.anyMember()
	m.Engine = choose(w, "mode", []EngineMode{EngineRunning, EngineRunning, EnginePaused, EngineUpdating})
}

func (w *world) exclude() {
	m := w.anyMember()
	m.Excluded = choose(w, "excluded", []string{"", "", "PodNotReady"})
}

func (w *world) fixCapacity() {
	w.anyMember().Capacity = choose(w, "fixed", []int64{0, 1, 3, 16})
}

func (w *world) access() {
	s := &w.fleet.Senders[rapid.IntRange(0, 1).Draw(w.t, "sender")]
	s.Access = choose(w, "access", []Access{AccessOpen, AccessOpen, AccessFenced})
}

func (w *world) generation() {
	w.fleet.Senders[rapid.IntRange(0, 1).Draw(w.t, "sender")].MinGeneration++
}

func (w *world) hold() {
	w.fleet.Leasing = choose(w, "leasing", []Leasing{LeasingOpen, LeasingOpen, LeasingHeld})
}

func (w *world) publish() {
	w.fleet.Published = choose(w, "published", []Version{"", "v1", "v2"})
	w.fleet.Target = choose(w, "target", []Version{"", "v1", "v2"})
}

// reload changes the weights of an engine under whatever runs there.
func (w *world) reload() {
	e := w.engines[w.anyMember().Incarnation]
	e.version = choose(w, "loaded", []Version{"v1", "v2"})
}

// drawConfig is what the pool is created with; the caps stay as they are from then on.
func (w *world) drawConfig() {
	c := &w.fleet.Config
	c.MaxRequests = choose(w, "maxRequests", []int{1_000_000, 1_000_000, 12})
	c.MaxSessions = choose(w, "maxSessions", []int{1_000_000, 1_000_000, 4})
	for range 6 {
		w.configure()
	}
}

func (w *world) configure() {
	c := &w.fleet.Config
	switch rapid.IntRange(0, 7).Draw(w.t, "field") {
	case 0:
		c.OnAmbiguous = choose(w, "onAmbiguous", []Ambiguity{FailPool, IsolateBackend})
	case 1:
		c.Certainty = choose(w, "certainty", []time.Duration{0, time.Minute})
	case 2:
		c.AfterPublish = choose(w, "afterPublish", []AfterPublish{KeepHomes, ResetHomes})
	case 3:
		c.AdmissionPercent = choose(w, "admission", []int64{0, 50, 100, 150})
	case 4:
		c.Policy = choose(w, "policy", []Policy{LeastOutstanding, LeastOutstanding, LeastSessions, RoundRobin, ConsistentHash})
	case 5:
		c.GroupSlackPercent = choose(w, "slack", []int64{0, 50})
	case 6:
		c.StartWindow = choose(w, "startSeconds", []time.Duration{10 * time.Second, 30 * time.Second, 50 * time.Second})
	case 7:
		c.Mode = choose(w, "mode", []AffinityMode{Sticky, Rebalance})
		c.Moving.CoolDown = choose(w, "coolDown", []time.Duration{0, time.Minute})
		c.Moving.GapTurns = choose(w, "gapTurns", []int64{0, 1})
	}
}

// raiseEpoch ends everything of before (R7).
func (w *world) raiseEpoch() {
	w.fleet.Epoch++
	w.apply()
}

// offerNonsense hands over fleets that must be refused whole.
func (w *world) offerNonsense() {
	f := w.fleet
	f.Members = slices.Clone(f.Members)
	switch rapid.IntRange(0, 2).Draw(w.t, "nonsense") {
	case 0:
		f.Epoch--
	case 1:
		f.Members = append(f.Members, Member{Name: "z", Incarnation: ""})
	case 2:
		f.Config.TTL = f.Config.StartWindow / 2
	}
	f.Senders, f.Leasing = nil, LeasingHeld
	before := w.tab.Snapshot(w.now)
	if err := w.tab.Apply(f, w.now); err == nil {
		w.t.Fatalf("a fleet that cannot be used was taken: %+v", f)
	}
	w.unchanged("a refused fleet", before)
}

// record writes what is a fact to status, and says so.
func (w *world) record() {
	snap := w.tab.Snapshot(w.now)
	if snap.Failure != nil {
		w.tab.FailureRecorded(snap.Failure.Request, w.now)
	}
	for _, b := range snap.Backends {
		if b.Isolated {
			w.tab.IsolationRecorded(b.Incarnation, w.now)
		}
	}
}

// takeOver is another process becoming the leader: it knows status and nothing else.
func (w *world) takeOver() {
	past := Takeover{Windows: w.windows}
	if f := w.tab.Snapshot(w.now).Failure; f != nil && f.Recorded {
		past.Failure = f
	}
	for _, c := range w.calls {
		c.waiters = nil // its connections are cut; it may ask again
		if c.token == nil {
			c.leased, c.answers = false, 0
			delete(w.granted, c.req.ID)
		}
	}
	if oneIn(w, 2, "the weights change before it looks") {
		w.reload()
	}
	w.begin(past)
}

// leadership moves its end, or takes it away.
func (w *world) leadership() {
	w.authority = time.Time{}
	if !oneIn(w, 2, "for ever") {
		w.authority = w.now.Add(time.Duration(rapid.IntRange(-1, 20).Draw(w.t, "for")) * time.Second)
	}
	w.tab.LeadUntil(w.authority, w.now)
}

// lapsed reports whether err is what leadership that has run out makes of every call but few.
func (w *world) lapsed(err error) bool {
	return errors.Is(err, ErrNoLeader) && !w.authority.IsZero() && !w.now.Before(w.authority)
}

// pass lets time go by: often moments, sometimes past a window, a lease, a retention time.
func (w *world) pass() {
	d := choose(w, "time", []time.Duration{
		time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond, 2 * time.Second, 10 * time.Second,
		31 * time.Second, 61 * time.Second, 121 * time.Second, 16 * time.Minute, 3 * time.Hour,
	})
	w.now = w.now.Add(d)
	if oneIn(w, 2, "a reader comes first") {
		w.tab.Snapshot(w.now)
		return
	}
	w.tab.Tick(w.now)
}
