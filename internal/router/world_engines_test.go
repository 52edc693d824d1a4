package router

import (
	"cmp"
	"slices"
	"time"
)

// engine is one engine process with what truly runs on it.
type engine struct {
	inc     Incarnation
	born    Term
	state   engineState
	running map[RID]*call
	clock   float64
	version Version
	seq     uint64
	// seen is what the table has been told of the engine since it met it.
	seen Observation
	met  *backend
	// told is the last version that the table was told of since then.
	told Version
	// doubted is the latest observation that may have read the version before a refused connection.
	doubted uint64
	// fleet says whether it was in the fleet that was applied last.
	fleet membership
}

type membership uint8

const (
	inFleet membership = iota
	outOfFleet
)

type engineState uint8

const (
	engineAlive engineState = iota
	engineEnded
)

// letter is a question to an engine, or its answer, on its way.
type letter struct {
	kind  letterKind
	chore Chore
	ranks []RankLoad
	begun time.Time
}

type letterKind uint8

const (
	// question has not reached the engine.
	question letterKind = iota
	// answer has not reached the table.
	answer
	// pauseAnswer says that an abort-mode pause was done.
	pauseAnswer
)

// askEngines puts the table's questions in the mail.
func (w *world) askEngines() {
	chores := w.tab.Chores(w.now)
	slices.SortFunc(chores, func(a, b Chore) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	for _, c := range chores {
		slices.Sort(c.Abort)
		w.mail = append(w.mail, letter{kind: question, chore: c})
	}
}

// deliver takes one letter where it goes; answers may arrive twice, questions may be lost.
func (w *world) deliver() {
	if len(w.mail) == 0 {
		return
	}
	i := 0
	if n := len(w.mail); n > 1 && oneIn(w, 3, "out of order") {
		i = choose(w, "letter", seq(n))
	}
	l := w.mail[i]
	if l.kind == question || !oneIn(w, 8, "delivered twice") {
		w.mail = slices.Delete(w.mail, i, i+1)
	}
	switch l.kind {
	case question:
		if !oneIn(w, 12, "letter lost") {
			w.handle(l)
		}
	case answer:
		w.hand(l)
	case pauseAnswer:
		w.tab.PauseAborted(l.chore.Incarnation, l.begun, w.now)
	}
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// handle is the engine's side of a chore: it tells the truth. A paused engine may drop aborts.
func (w *world) handle(l letter) {
	e := w.engines[l.chore.Incarnation]
	if e.state == engineEnded {
		return
	}
	for _, rid := range l.chore.Abort {
		if c := e.running[rid]; c != nil && (!w.paused(e) || oneIn(w, 2, "abort of a paused execution works")) {
			delete(e.running, rid)
			c.work = workAborted
		}
	}
	e.clock++
	l.kind, l.ranks = answer, e.loads()
	w.mail = append(w.mail, l)
}

// loads is a snapshot of two ranks.
func (e *engine) loads() []RankLoad {
	ranks := []RankLoad{{Rank: 0, Clock: e.clock}, {Rank: 1, Clock: e.clock}}
	for rid, c := range e.running {
		ranks[int(rid[15])%2].Total += c.req.Executions
	}
	return ranks
}

// hand gives an engine's answer to the table.
func (w *world) hand(l letter) {
	if len(l.chore.Abort) > 0 {
		w.tab.AbortAnswered(l.chore.Incarnation, l.chore.Abort, w.now)
	}
	if l.chore.ReadLoads {
		w.tab.LoadsRead(l.chore.Incarnation, l.chore.Stamp, l.ranks, w.now)
	}
}

// paused reports whether the engine makes no progress.
func (w *world) paused(e *engine) bool {
	m := w.member(e.inc)
	return m != nil && m.Engine != EngineRunning
}

// pauseByAbort empties the engine, which then says so; what is written later waits on it.
func (w *world) pauseByAbort() {
	e := w.engines[choose(w, "engine", w.incarnations())]
	if e.state == engineEnded {
		return
	}
	for rid, c := range e.running {
		delete(e.running, rid)
		c.work = workAborted
	}
	w.mail = append(w.mail, letter{kind: pauseAnswer, chore: Chore{Incarnation: e.inc}, begun: w.now})
}

// finish lets an execution come to its end.
func (w *world) finish() {
	c := w.drawCall("call", func(c *call) bool { return c.work == workRunning && !w.paused(w.engines[c.token.Incarnation]) })
	if c != nil {
		delete(w.engines[c.token.Incarnation].running, c.token.RID)
		c.work = workFinished
	}
}

// kill ends an engine process; the table is not told yet.
func (w *world) kill() {
	w.end(choose(w, "engine", w.incarnations()))
}

func (w *world) end(inc Incarnation) {
	e := w.engines[inc]
	e.state = engineEnded
	for rid, c := range e.running {
		delete(e.running, rid)
		c.work = workKilled
	}
}

// vouch tells the table that processes have ended, which is true.
func (w *world) vouch() {
	var ended []Incarnation
	for _, inc := range w.incarnations() {
		if w.engines[inc].state == engineEnded {
			ended = append(ended, inc)
		}
	}
	if len(ended) > 0 {
		inc := choose(w, "ended", ended)
		w.vouched[inc] = struct{}{}
		w.tab.Gone([]Incarnation{inc}, w.now)
	}
}

// bury ends an engine process, takes it out of the fleet and tells the table, in any order.
func (w *world) bury() {
	inc := choose(w, "engine", w.incarnations())
	w.end(inc)
	tell := func() {
		w.vouched[inc] = struct{}{}
		w.tab.Gone([]Incarnation{inc}, w.now)
	}
	first := oneIn(w, 2, "told before it leaves")
	if first {
		tell()
	}
	w.fleet.Members = slices.DeleteFunc(w.fleet.Members, func(m Member) bool { return m.Incarnation == inc })
	w.apply()
	if !first {
		tell()
	}
}

// followed is what a replica has heard of by the time that it leads: of some of the ends of before.
func (w *world) followed() {
	for _, inc := range w.incarnations() {
		if w.engines[inc].state == engineEnded && !oneIn(w, 3, "an end that nobody saw") {
			w.vouched[inc] = struct{}{}
			w.tab.Gone([]Incarnation{inc}, w.now)
		}
	}
}

// probe tells the table what the prober saw of an engine, or what it saw long ago.
func (w *world) probe() {
	e := w.engines[choose(w, "engine", w.incarnations())]
	o := w.drawObservation(e)
	if !oneIn(w, 8, "stale") {
		e.seq++
	}
	o.Seq = e.seq
	w.observe(e, o)
}

func (w *world) observe(e *engine, o Observation) {
	if e.met != nil && o.Seq > e.seen.Seq {
		last := e.seen
		e.seen = o
		if o.Capacity == 0 {
			e.seen.Capacity = last.Capacity
		}
		if o.Seq <= e.doubted {
			e.seen.Version = last.Version
		}
		e.told = cmp.Or(e.seen.Version, e.told)
	}
	w.tab.Observe(o, w.now)
}

// refuseConnection tells the table that somebody could not connect.
func (w *world) refuseConnection() {
	e := w.engines[choose(w, "engine", w.incarnations())]
	if e.met != nil {
		e.seen.Version, e.doubted = "", e.seen.Seq+1 // by a probe that was under way
		if e.seen.Health == Healthy {
			e.seen.Health = Refused
		}
	}
	w.tab.ConnectionRefused(e.inc, w.now)
}

func (w *world) drawObservation(e *engine) Observation {
	o := Observation{Incarnation: e.inc, Health: Healthy, EngineTotal: -1}
	if e.state == engineEnded || oneIn(w, 4, "ill") {
		o.Health = choose(w, "health", []Health{Unhealthy, Refused, SuspectedPaused, HealthUnknown})
		return o
	}
	o.Version = e.version
	if oneIn(w, 3, "says its capacity") {
		o.Capacity = choose(w, "capacity", []int64{1, 2, 8, 20})
	}
	if oneIn(w, 3, "says its total") {
		for _, r := range e.loads() {
			o.EngineTotal = max(0, o.EngineTotal) + r.Total
		}
	}
	return o
}
