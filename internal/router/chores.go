package router

import "time"

const (
	// choreEvery paces the calls about one engine.
	choreEvery = 500 * time.Millisecond
	// abortEvery repeats aborts, which an engine may drop while paused or retracting.
	abortEvery = 5 * time.Second
	// abortBatch bounds the rids of one chore.
	abortBatch = 64
)

// chores lists what the engines should be asked now: to abort what no client answers for, and
// where nothing can be granted, to show their load, which may prove quiescence (5.3 c). Without a
// term there are none: whoever has one grants meanwhile, so that nothing would be proven.
func (s *state) chores(now instant) []chore {
	s.advance(now)
	if s.term == 0 {
		return nil
	}
	var out []chore
	for _, b := range s.backends {
		if b.URL == "" || b.process == processEnded || now < b.settling.nextChore {
			continue
		}
		if c := s.choreFor(b, now); c.reads || len(c.aborts) > 0 {
			b.settling.nextChore = now.add(choreEvery)
			out = append(out, c)
		}
	}
	return out
}

// chore is Chore by the table's own words.
type chore struct {
	at     *backend
	aborts []RID
	reads  bool
	stamp  uint64
}

func (s *state) choreFor(b *backend, now instant) chore {
	c := chore{at: b, stamp: b.settling.stamp, aborts: b.abortsDue(s.mayGrant(now))}
	c.reads = len(c.aborts) == 0 && b.provable(now)
	if len(c.aborts) == 0 && (c.reads || b.Drain == DrainAbort) && now >= b.settling.nextAbort {
		b.repeatAborts()
		b.settling.nextAbort = now.add(abortEvery)
	}
	return c
}

// abortsDue lists executions whose abort the engine has not yet answered: held ones, and under an
// aborting drain those of clients too. A router whose leadership has run out leaves alone what was
// not renewed, since it may be renewed with another, and what a drain is to end, since whoever leads
// may have ended the drain.
func (b *backend) abortsDue(leads bool) []RID {
	due := dueIn(&b.held, abortBatch, leads)
	if leads && b.Drain == DrainAbort {
		due = append(due, dueIn(&b.active, abortBatch-len(due), leads)...)
	}
	return due
}

// dueIn lists the aborts of a list that are due, up to so many.
func dueIn(leases *list[lease], most int, leads bool) []RID {
	var out []RID
	for l := range leases.all {
		if len(out) < most && l.abort == abortDue && (leads || l.phase != phaseLost) {
			out = append(out, l.rid)
		}
	}
	return out
}

// repeatAborts makes the aborts of what is still there due once more, without taking back the
// proof under way: an abort starts nothing.
func (b *backend) repeatAborts() {
	for _, leases := range []*list[lease]{&b.active, &b.held} {
		for l := range leases.all {
			l.abort = abortDue
		}
	}
}

// provable reports whether a load snapshot read now can count towards quiescence: nothing can
// be granted there, every start window has closed and the engine runs.
func (b *backend) provable(now instant) bool {
	return b.unproven() && b.quiet() && now >= b.settling.windowsEnd && b.generates()
}

// abortAnswered notes that the engine took the aborts.
func (s *state) abortAnswered(inc Incarnation, rids []RID) {
	b := s.backends[inc]
	if b == nil {
		return
	}
	answered := make(map[RID]struct{}, len(rids))
	for _, r := range rids {
		answered[r] = struct{}{}
	}
	for _, leases := range []*list[lease]{&b.active, &b.held} {
		for l := range leases.all {
			if _, ok := answered[l.rid]; ok {
				l.abort = abortAnswered
			}
		}
	}
}

// loadsRead takes a load snapshot. The first one after the aborts is the baseline; a later
// one, newer on every rank by the engine's own clock and empty on every rank, proves that
// nothing of before runs any more.
func (s *state) loadsRead(inc Incarnation, stamp uint64, ranks []RankLoad, now instant) {
	s.advance(now)
	b := s.backends[inc]
	if b == nil || stamp != b.settling.stamp || !b.provable(now) || len(ranks) == 0 {
		return
	}
	if b.settling.baseline == nil {
		b.settling.baseline = clocksOf(ranks)
		return
	}
	if !emptySince(b.settling.baseline, ranks) {
		return
	}
	s.quiesce(b, now)
	s.refresh(b)
	s.forgetIfRetired(b)
	s.reviewSettling(now)
}

func clocksOf(ranks []RankLoad) map[int]float64 {
	out := make(map[int]float64, len(ranks))
	for _, r := range ranks {
		out[r.Rank] = r.Clock
	}
	return out
}

// emptySince: the same ranks, each newer than before, none with anything on it.
func emptySince(before map[int]float64, ranks []RankLoad) bool {
	met := clocksOf(ranks)
	if len(met) != len(before) {
		return false
	}
	for _, r := range ranks {
		was, ok := before[r.Rank]
		if !ok || r.Clock <= was || r.Total != 0 {
			return false
		}
	}
	return true
}
