package router

// maxGraves bounds the incarnations remembered by graves. A grave takes some hundred bytes; tokens of
// earlier terms come for as long as their clients hold on to them, which nothing bounds, so that graves
// are kept until there are more than that. Whoever then presents a token of the oldest is believed to
// have something running there, as if nothing had been heard of it.
const maxGraves = 4096

// graves remembers incarnations that the table keeps no backend of, and on which all that earlier terms
// left is known to be gone (5.3): a token of theirs, however late, tells of nothing that runs. What is
// known of the process itself goes with it, since an incarnation has one life.
type graves struct {
	process map[Incarnation]process
	// order lists them from the oldest on, as a ring once it is full.
	order  []Incarnation
	oldest int
}

// add remembers an incarnation; of one that is known already only the end of its process is news.
func (g *graves) add(inc Incarnation, p process) {
	if before, known := g.process[inc]; known {
		g.process[inc] = max(before, p)
		return
	}
	if g.process == nil {
		g.process = map[Incarnation]process{}
	}
	g.process[inc] = p
	if len(g.order) < maxGraves {
		g.order = append(g.order, inc)
		return
	}
	delete(g.process, g.order[g.oldest])
	g.order[g.oldest] = inc
	g.oldest = (g.oldest + 1) % maxGraves
}

// Ended lists the incarnations whose process the table knows to have ended, in no particular order, as
// far as it remembers.
func (t *Table) Ended() []Incarnation {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Incarnation
	for inc, p := range t.state.graves.process {
		if p == processEnded {
			out = append(out, inc)
		}
	}
	for inc, b := range t.state.backends {
		if b.process == processEnded {
			out = append(out, inc)
		}
	}
	return out
}

// past says whether all that earlier terms left on an incarnation is known to be gone.
type past uint8

const (
	// pastOpen: it is not; a token may tell of something that runs.
	pastOpen past = iota
	// pastClosed: it is, for good. Nobody grants under an earlier term any more, and the start windows
	// of those that did are over.
	pastClosed
)

// over finds the incarnation of a claim of an earlier term on which nothing of such terms can run any
// more; nil: something may. What is said there must stay true: a fence, a hold or a drain that was
// called complete is not opened by a client that has slept.
func (s *state) over(c *Claim, now instant) *backend {
	if b := s.backends[c.Incarnation]; b != nil {
		if b.past == pastClosed {
			return b
		}
		return nil
	}
	if _, buried := s.graves.process[c.Incarnation]; !buried {
		return nil
	}
	b := newBackend(Member{Name: c.Backend, Incarnation: c.Incarnation}, now)
	b.retired = true
	s.recall(b)
	return b
}

// recall gives an incarnation that is met what is remembered of it.
func (s *state) recall(b *backend) {
	if p, buried := s.graves.process[b.Incarnation]; buried {
		b.process, b.past = p, pastClosed
	}
}

// bury records an execution that is known to be gone before anything was counted for it: nothing is
// counted, and no session is at home by it.
func (s *state) bury(l *lease, b *backend, now instant) {
	l.at, l.phase, l.fate, l.endedAt, l.span = b, phaseEnded, FateDead, now, b.spanSince(l.version)
	if l.filed == filedAsStray {
		s.strays[l.rid] = l
	} else {
		s.file(l)
	}
	s.ended.add(l)
	s.totals.Dead++
}
