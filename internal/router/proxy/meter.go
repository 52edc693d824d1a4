package proxy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Label is how a request ended, for metrics: an outcome of design 5.2, or one of those below.
type Label string

// The labels of requests that had no lease.
const (
	// labelRefused: the proxy or the router refused it.
	labelRefused Label = "Refused"
	// labelGone: its client had gone before anything was sent.
	labelGone Label = "Gone"
	// labelInformed: it needed none.
	labelInformed Label = "Informed"
	// labelControlled: it went to every engine.
	labelControlled Label = "Controlled"
	// labelFinished: it ended a session.
	labelFinished Label = "Finished"
)

func label(o router.Outcome) Label { return Label(o) }

// Labels lists every label, the same for every pool.
func Labels() []Label {
	return []Label{
		label(router.Succeeded), label(router.Aborted), label(router.NotSent), label(router.Rejected), label(router.Cancelled),
		label(router.Ambiguous), labelRefused, labelGone, labelInformed, labelControlled, labelFinished,
	}
}

// bounds are the upper ends of a histogram's classes, in seconds; the last class has none.
func bounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
}

// Histogram counts durations by class.
type Histogram struct {
	// Bounds are the classes' upper ends in seconds, ascending.
	Bounds []float64
	// Counts has one class more than Bounds, for what is longer. The classes are disjoint.
	Counts []uint64
	// Sum is in seconds.
	Sum float64
}

// Count is the number of durations.
func (h Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Ended is what the requests of one pool and label add up to.
type Ended struct {
	Requests                 uint64
	RequestBytes, ReplyBytes int64
	// FirstByte is from arrival to the first byte of the reply, waiting included; only for replies
	// that were passed on.
	FirstByte Histogram
	// Total is from arrival to the end.
	Total Histogram
}

// PoolMetrics is what the proxy has seen of one pool.
type PoolMetrics struct {
	// Held requests wait for a lease now.
	Held int64
	// WithoutAffinity requests named no session.
	WithoutAffinity int64
	Ended           map[Label]Ended
}

// sizes are those of one request.
type sizes struct {
	request, reply int64
	first          time.Time
}

func (c *call) firstByte(now time.Time) { c.sizes.first = now }

// meter counts, pool by pool. A pool that is gone is forgotten when it is next looked at.
type meter struct {
	mu    sync.Mutex
	pools map[router.PoolKey]*series // guarded by mu
}

func newMeter() *meter { return &meter{pools: map[router.PoolKey]*series{}} }

// series are one pool's numbers.
type series struct {
	held, withoutAffinity atomic.Int64

	mu    sync.Mutex
	ended map[Label]*Ended // guarded by mu
	// looks are the latest answers about what those who wait may hope for, by sender; guarded by mu.
	looks map[router.SenderName]look
}

// look is one answer and when it was given.
type look struct {
	at       time.Time
	prospect router.Prospect
}

// prospect answers from the latest look, if it is younger than so long: those who wait are many,
// and all of one sender may hope for the same.
func (s *series) prospect(sender router.SenderName, now time.Time, young time.Duration, ask func() router.Prospect) router.Prospect {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.looks[sender]
	if !known || now.Sub(last.at) >= young {
		last = look{now, ask()}
		s.looks[sender] = last
	}
	return last.prospect
}

func (m *meter) of(pool router.PoolKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.pools[pool]
	if s == nil {
		s = &series{ended: map[Label]*Ended{}, looks: map[router.SenderName]look{}}
		m.pools[pool] = s
	}
	return s
}

// hold counts a held request, unless there are as many as there may be.
func (s *series) hold(most int64) bool {
	if s.held.Add(1) > most {
		s.held.Add(-1)
		return false
	}
	return true
}

func (s *series) unhold() { s.held.Add(-1) }

// measure counts a request that has ended.
func (h *Handler) measure(c *call, l Label) {
	now := h.cfg.Clock()
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	e := c.meter.ended[l]
	if e == nil {
		e = &Ended{FirstByte: newHistogram(), Total: newHistogram()}
		c.meter.ended[l] = e
	}
	e.Requests++
	e.RequestBytes += c.sizes.request
	e.ReplyBytes += c.sizes.reply
	e.Total.add(now.Sub(c.arrived))
	if !c.sizes.first.IsZero() {
		e.FirstByte.add(c.sizes.first.Sub(c.arrived))
	}
}

func newHistogram() Histogram {
	b := bounds()
	return Histogram{Bounds: b, Counts: make([]uint64, len(b)+1)}
}

func (h *Histogram) add(d time.Duration) {
	s := d.Seconds()
	i := 0
	for i < len(h.Bounds) && s > h.Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += s
}

func (h Histogram) clone() Histogram {
	h.Counts = append([]uint64(nil), h.Counts...)
	return h
}

// Snapshot copies what was counted, for whoever exports it. Pools that no longer exist are left
// out, and forgotten.
func (h *Handler) Snapshot() map[router.PoolKey]PoolMetrics {
	live := h.cfg.Pools.All()
	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	out := make(map[router.PoolKey]PoolMetrics, len(h.meter.pools))
	for key, s := range h.meter.pools {
		if live[key] == nil {
			delete(h.meter.pools, key)
			continue
		}
		out[key] = s.snapshot()
	}
	return out
}

func (s *series) snapshot() PoolMetrics {
	out := PoolMetrics{Held: s.held.Load(), WithoutAffinity: s.withoutAffinity.Load(), Ended: map[Label]Ended{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, e := range s.ended {
		c := *e
		c.FirstByte, c.Total = e.FirstByte.clone(), e.Total.clone()
		out.Ended[l] = c
	}
	return out
}
