package enginesim

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

// execution is a request behind the gate.
type execution struct {
	server *Server
	seqs   []*sequence
}

// execute passes the gate and hands the plans to the schedulers. Each execution that it returns must be ended
// by leave. It fails with a *fault to be replied, or with the context's error.
func (s *Server) execute(ctx context.Context, plans []plan) (*execution, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	x := &execution{server: s}
	for _, p := range plans {
		x.seqs = append(x.seqs, &sequence{plan: p, wake: make(chan struct{}, 1)})
	}
	var err error
	s.change(func(*state) { err = s.startLocked(x.seqs) })
	if err != nil {
		s.change(func(st *state) { st.gate.readers-- })
		return nil, err
	}
	return x, nil
}

// enter waits at the gate; where generation is paused that is parking.
func (s *Server) enter(ctx context.Context) error {
	s.change(func(st *state) { st.gate.parked++ })
	defer s.change(func(st *state) { st.gate.parked-- })
	return s.await(ctx, func(st *state) bool { return st.gate.enter() })
}

// startLocked begins all of the sequences or none. Their start is on record before they begin.
func (s *Server) startLocked(seqs []*sequence) error {
	if err := s.st.place(seqs, s.cfg.MaxQueued); err != nil {
		return err
	}
	for _, q := range seqs {
		s.recordLocked(q, execlog.Record{Event: execlog.Start, Traceparent: q.trace})
	}
	s.st.begin(seqs, s.st.at)
	s.countdownLocked()
	return nil
}

// place checks that all of the sequences can start and gives each that has none its rank.
func (st *state) place(seqs []*sequence, maxQueued int) error {
	for i, q := range seqs {
		if err := st.reject(q, seqs[:i], maxQueued); err != nil {
			return err
		}
	}
	for _, q := range seqs {
		if q.rank < 0 {
			q.rank = st.next
			st.next = (st.next + 1) % len(st.ranks)
		}
	}
	return nil
}

// begin hands sequences that have been placed to their schedulers.
func (st *state) begin(seqs []*sequence, now time.Duration) {
	byRank := map[int][]model.Request{}
	for _, q := range seqs {
		q.started = now
		st.sequences[q.id] = q
		st.counts.requests++
		byRank[q.rank] = append(byRank[q.rank], model.Request{
			ID: q.id, Session: q.prefixOf, PromptTokens: q.promptTokens, OutputTokens: max(1, q.output),
		})
	}
	for i, r := range st.ranks {
		if err := r.model.Submit(now, byRank[i]...); err != nil {
			panic(fmt.Sprintf("enginesim: the plan passed and the model refuses: %v", err))
		}
	}
}

// reject says why a sequence cannot start, or nil.
func (st *state) reject(q *sequence, before []*sequence, maxQueued int) error {
	if st.sequences[q.id] != nil {
		return handlerError(http.StatusBadRequest, fmt.Sprintf("Duplicate request ID detected: %s", q.id))
	}
	queued := 0
	for _, b := range before {
		if b.id == q.id {
			return handlerError(http.StatusBadRequest, fmt.Sprintf("Duplicate request ID detected: %s", q.id))
		}
		queued++
	}
	if maxQueued == 0 {
		return nil
	}
	for _, r := range st.ranks {
		queued += r.model.Load().Waiting
	}
	if queued >= maxQueued*len(st.ranks) {
		return errQueueFull
	}
	return nil
}

// wait waits until every sequence has ended. If the client goes first it aborts them.
func (x *execution) wait(ctx context.Context) ([]view, error) {
	for _, q := range x.seqs {
		for x.look(q).status == seqActive {
			if err := x.sleep(ctx, q); err != nil {
				return nil, err
			}
		}
	}
	views := make([]view, len(x.seqs))
	for i, q := range x.seqs {
		views[i] = x.look(q)
	}
	return views, nil
}

// sleep waits until something may be new about q. It fails when the client or the engine has gone.
func (x *execution) sleep(ctx context.Context, q *sequence) error {
	select {
	case <-q.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-x.server.gone:
		return errGone
	}
}

func (x *execution) look(q *sequence) (v view) {
	x.server.read(func(st *state) { v = st.look(q, st.at) })
	return v
}

// leave ends the execution: what still runs is aborted, as the engine does when a client disconnects. Where a
// pause delays that, the gate stays occupied until the sequences are gone.
func (x *execution) leave() {
	s := x.server
	s.change(func(st *state) {
		for _, q := range x.seqs {
			if q.status == seqActive {
				s.abortLocked(q, abortedRunning)
			}
		}
	})
	if s.await(context.Background(), x.allEnded) == nil {
		s.change(func(st *state) { st.gate.readers-- })
	}
}

func (x *execution) allEnded(*state) bool {
	for _, q := range x.seqs {
		if q.status == seqActive {
			return false
		}
	}
	return true
}

// abortLocked aborts a sequence now or, where the engine stands still, later.
func (s *Server) abortLocked(q *sequence, message string) {
	if s.st.abort(q, message, s.st.at) {
		s.finishLocked(q)
	}
}

// haltLocked and resumeLocked stop and start the schedulers for one reason.
func (s *Server) haltLocked(why haltReason) {
	s.st.halt(why, s.st.at, s.time.seconds())
}

func (s *Server) resumeLocked(why haltReason) {
	for _, q := range s.st.resume(why, s.st.at) {
		s.finishLocked(q)
	}
}
