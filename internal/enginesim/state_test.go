package enginesim

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

// check returns the first invariant of the package comment that is broken, as far as a state can show it.
func (st *state) check() error {
	var ids []string
	for i, r := range st.ranks {
		for _, id := range r.model.IDs() {
			if q := st.sequences[id]; q == nil || q.rank != i || q.status != seqActive {
				return fmt.Errorf("S1: rank %d runs %q, the engine does not know it there", i, id)
			}
			ids = append(ids, id)
		}
		if _, moves := r.model.NextEvent(); st.halts != 0 && moves {
			return fmt.Errorf("S3: rank %d goes on, halts are %b", i, st.halts)
		}
		if _, moves := r.model.NextEvent(); st.halts == 0 && !moves && !r.model.Idle() {
			return fmt.Errorf("S3: rank %d stands still for no reason", i)
		}
	}
	if len(ids) != len(st.sequences) {
		return fmt.Errorf("S1: %d sequences are known, %d are in schedulers", len(st.sequences), len(ids))
	}
	return nil
}

// history drives a state and remembers what must hold over time.
type history struct {
	st     *state
	now    time.Duration
	seqs   []*sequence
	ended  map[string]int
	before []loadSnapshot // as of the halt
}

func (h *history) note(qs []*sequence) {
	for _, q := range qs {
		h.ended[q.id]++
	}
}

func (h *history) advance(t *rapid.T) {
	h.now += time.Duration(rapid.IntRange(0, 500).Draw(t, "ms")) * time.Millisecond
	h.note(h.st.advance(h.now))
}

func (h *history) submit(t *rapid.T) {
	if h.st.gate.paused != notPaused || h.st.halts&haltUpdating != 0 {
		return // S2 is the gate's
	}
	q := &sequence{plan: plan{
		id: fmt.Sprint(len(h.seqs)), rank: rapid.IntRange(-1, 1).Draw(t, "rank"),
		promptTokens: rapid.IntRange(1, 60).Draw(t, "prompt"), output: rapid.IntRange(0, 40).Draw(t, "output"),
	}, wake: make(chan struct{}, 1)}
	err := h.st.place([]*sequence{q}, 3)
	if errors.Is(err, errQueueFull) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	h.st.begin([]*sequence{q}, h.now)
	h.seqs = append(h.seqs, q)
}

func (h *history) abort(t *rapid.T) {
	if len(h.seqs) == 0 {
		return
	}
	q := rapid.SampledFrom(h.seqs).Draw(t, "sequence")
	if q.status == seqActive && h.st.abort(q, "Aborted", h.now) {
		h.note([]*sequence{q})
	}
}

func (h *history) pause(why haltReason, mode pauseMode) {
	if h.st.halts == 0 {
		h.before = nil
		for i := range h.st.ranks {
			h.before = append(h.before, h.st.snapshot(i, 1))
		}
	}
	h.st.halt(why, h.now, 1)
	if why == haltPaused {
		h.st.gate.paused = mode
	}
	if mode == pauseRetract {
		for _, r := range h.st.ranks {
			r.model.RetractAll(h.now)
		}
		h.note(h.st.advance(h.now)) // takes note of the retractions
	}
}

func (h *history) resume(why haltReason) {
	if why == haltPaused {
		h.st.gate.paused = notPaused
	}
	h.note(h.st.resume(why, h.now))
}

func TestStateKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{DPSize: 2, Model: model.Params{MaxRunning: 2, KVTokens: 128, BlockTokens: 4, ChunkTokens: 32, ReserveTokens: 1}}
		h := &history{st: newState(cfg.WithDefaults()), ended: map[string]int{}}
		t.Repeat(map[string]func(*rapid.T){
			"advance":         h.advance,
			"submit":          h.submit,
			"abort":           h.abort,
			"pause in place":  func(*rapid.T) { h.pause(haltPaused, pauseInPlace) },
			"pause retract":   func(*rapid.T) { h.pause(haltPaused, pauseRetract) },
			"continue":        func(*rapid.T) { h.resume(haltPaused) },
			"begin an update": func(*rapid.T) { h.pause(haltUpdating, notPaused) },
			"end an update":   func(*rapid.T) { h.resume(haltUpdating) },
			"": func(t *rapid.T) {
				if err := h.st.check(); err != nil {
					t.Fatal(err)
				}
				for i := range h.st.ranks {
					if h.st.halts != 0 && h.st.snapshot(i, 2) != h.before[i] {
						t.Fatalf("S4: rank %d: %+v, before the halt %+v", i, h.st.snapshot(i, 2), h.before[i])
					}
				}
			},
		})
		h.resume(haltUpdating)
		h.resume(haltPaused)
		h.note(h.st.advance(h.now + time.Hour))
		for _, q := range h.seqs {
			if h.ended[q.id] != 1 || q.status == seqActive {
				t.Fatalf("sequence %s ended %d times, status %v", q.id, h.ended[q.id], q.status)
			}
		}
		if !h.st.idle() || slices.ContainsFunc(h.st.ranks, func(r *rank) bool { return !r.model.Idle() }) {
			t.Fatal("something is left")
		}
	})
}
