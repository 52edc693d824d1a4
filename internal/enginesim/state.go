package enginesim

import (
	"slices"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

// rank is one data-parallel scheduler.
type rank struct {
	model *model.Engine
	last  loadSnapshot // as of the moment at which the engine halted
}

// loadSnapshot is what a scheduler last published about itself.
type loadSnapshot struct {
	load model.Load
	at   float64 // seconds since 1970
}

// haltReason is a set of reasons for which the schedulers' loops stand still.
type haltReason uint

const (
	haltPaused haltReason = 1 << iota
	haltUpdating
	haltReleased
	haltHung
)

// health is what the engine thinks of itself.
type health int

const (
	starting health = iota
	up
	unhealthy
)

// weights is what is loaded.
type weights struct {
	version string
	path    string
	served  string
	content string // names the bytes; follows no label
}

// counts are what /metrics reports and the models do not know.
type counts struct {
	requests, aborted     int64
	updateTime            time.Duration
	latency, queue, first summary
	between               summary
}

// summary is the sum and the number of a series of durations.
type summary struct {
	sum time.Duration
	n   int64
}

func (s *summary) add(d time.Duration) { s.sum += d; s.n++ }

// addMean adds the mean time between two tokens of a sequence that has ended.
func (s *summary) addMean(span time.Duration, tokens int) {
	if tokens > 1 {
		s.add(span / time.Duration(tokens-1))
	}
}

// state is everything that changes in an engine. Its methods know no lock and no clock.
type state struct {
	// at is the engine time to which the models have advanced. Whoever acts on what it sees acts at this moment:
	// a later one could find that a sequence has ended meanwhile.
	at time.Duration

	ranks     []*rank
	sequences map[string]*sequence // by id
	next      int                  // the rank whose turn it is

	health  health
	closing closing
	halts   haltReason
	gate    gate
	weights weights
	groups  map[string]int // weight update groups: world size
	opened  map[string]struct{}
	flush   flushState
	memory  memory

	// controls counts replies to control requests and aborted outputs: signs of life other than batches.
	controls int64
	counts   counts
	faults   faults
	refusal  refusal
}

// closing says whether the engine has been told to end.
type closing int

const (
	open closing = iota
	terminating
)

// flushState says whether a flush is waiting for the engine to become idle.
type flushState int

const (
	notFlushing flushState = iota
	flushing
)

func newState(c Config) *state {
	st := &state{
		sequences: map[string]*sequence{}, groups: map[string]int{}, opened: map[string]struct{}{},
		weights: weights{version: c.WeightVersion, path: c.ModelPath, served: c.ServedModelName, content: c.ModelPath},
		health:  up,
		refusal: refusal{wanted: make(chan struct{}, 1)},
	}
	if c.Startup > 0 {
		st.health = starting
	}
	for range c.DPSize {
		st.ranks = append(st.ranks, &rank{model: model.New(c.Model)})
	}
	return st
}

// advance moves the models to now and returns the sequences that ended by themselves, in order.
func (st *state) advance(now time.Duration) []*sequence {
	st.at = now
	var ended []*sequence
	for _, r := range st.ranks {
		for _, ev := range r.model.Advance(now) {
			q := st.sequences[ev.ID]
			if q == nil {
				continue
			}
			if ev.Kind == model.FirstToken {
				st.counts.first.add(ev.At - q.started)
				st.counts.queue.add(ev.Queued)
			}
			if ev.Kind == model.Finished {
				q.view = view{tokens: ev.OutputTokens, cached: ev.CachedTokens, retractions: ev.Retractions}
				st.end(q, seqFinished, q.plan.reason, ev.At)
				ended = append(ended, q)
			}
			q.notify()
		}
	}
	return ended
}

// end takes a sequence, whose view its caller has filled, out of the engine.
func (st *state) end(q *sequence, s sequenceStatus, reason finishReason, at time.Duration) {
	q.status, q.reason, q.finished = s, reason, at
	q.view.tokens = min(q.view.tokens, q.output)
	delete(st.sequences, q.id)
	st.counts.latency.add(at - q.started)
	st.counts.between.addMean(at-q.started, q.view.tokens)
	if s != seqFinished {
		st.counts.aborted++
		st.controls++
	}
	q.notify()
}

// abort ends a sequence, or marks it to be ended when the engine goes on, and reports whether it ended. A
// paused engine looks at its queue but not at what had run; one that loads weights or hangs looks at nothing.
func (st *state) abort(q *sequence, message string, now time.Duration) bool {
	if st.halts&^haltPaused != 0 || st.halts != 0 && q.ran == hadRun {
		q.doomed = message
		return false
	}
	p := st.ranks[q.rank].model.Abort(now, q.id)
	q.view = view{tokens: p.OutputTokens, cached: p.CachedTokens, retractions: p.Retractions}
	if p.Phase == model.Waiting && p.OutputTokens == 0 {
		st.end(q, seqAbortedWaiting, reasonAbort(abortedWaiting), now)
	} else {
		st.end(q, seqAborted, reasonAbort(message), now)
	}
	return true
}

// matching returns the sequences whose id begins with prefix, in order of id; all of them for "".
func (st *state) matching(prefix string) []*sequence {
	var out []*sequence
	for id, q := range st.sequences {
		if strings.HasPrefix(id, prefix) {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *sequence) int { return strings.Compare(a.id, b.id) })
	return out
}

// halt adds a reason to stand still. What the schedulers published before stays what can be read of them.
func (st *state) halt(why haltReason, now time.Duration, wall float64) {
	if st.halts == 0 {
		for _, r := range st.ranks {
			r.last = loadSnapshot{load: r.model.Load(), at: wall}
			r.model.Pause(now)
		}
		for _, q := range st.sequences {
			q.ran = hadNotRun
			if p := st.ranks[q.rank].model.Progress(q.id); p.Phase != model.Waiting || p.OutputTokens > 0 {
				q.ran = hadRun
			}
		}
	}
	st.halts |= why
}

// resume takes a reason away. When none is left the schedulers go on and deal with the aborts that had to wait.
func (st *state) resume(why haltReason, now time.Duration) []*sequence {
	before := st.halts
	st.halts &^= why
	if before == 0 || st.halts != 0 {
		return nil
	}
	for _, r := range st.ranks {
		r.model.Resume(now)
	}
	var ended []*sequence
	for _, q := range st.matching("") {
		if q.doomed != "" && st.abort(q, q.doomed, now) {
			ended = append(ended, q)
		}
	}
	return ended
}

// idle reports whether no scheduler has a request.
func (st *state) idle() bool { return len(st.sequences) == 0 }

// look returns how far a sequence is.
func (st *state) look(q *sequence, now time.Duration) view {
	if q.status != seqActive {
		v := q.view
		v.status, v.reason, v.rank, v.elapsed = q.status, q.reason, q.rank, q.finished-q.started
		return v
	}
	p := st.ranks[q.rank].model.Progress(q.id)
	return view{
		tokens: min(p.OutputTokens, q.output), cached: p.CachedTokens, retractions: p.Retractions,
		rank: q.rank, elapsed: now - q.started,
	}
}

// signs is a number that grows whenever any scheduler finishes a batch or answers something.
func (st *state) signs() int64 {
	n := st.controls
	for _, r := range st.ranks {
		n += r.model.Totals().Steps
	}
	return n
}

// snapshot is what can be read of a rank's load now.
func (st *state) snapshot(i int, wall float64) loadSnapshot {
	if st.halts != 0 {
		return st.ranks[i].last
	}
	return loadSnapshot{load: st.ranks[i].model.Load(), at: wall}
}
