package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// run is one experiment in progress: one scenario, one arm, one seed.
type run struct {
	sessions []workload.Session
	index    map[string]int // of a session, by its id
	trips    []trip         // of each session
	engines  []*model.Engine
	arm      placer
	opener   *opener
	timers   timers
	now      time.Duration
	meter    meter
}

// trip is how far a session has come.
type trip struct {
	opened time.Duration
	turn   int // the turn that runs or comes next
	at     int // the replica of the last turn; -1: none yet
}

// Run plays one scenario with one arm. Equal arguments give equal results. It fails when
// the workload cannot be drawn, a turn is longer than a replica's cache, or the arm refuses.
func Run(s Scenario, a Arm, seed uint64) (Result, error) {
	sessions, err := s.Sessions(seed)
	if err != nil {
		return Result{}, fmt.Errorf("%s, seed %d: %w", s.Name, seed, err)
	}
	result, err := play(s, a, sessions, seed)
	if err != nil {
		return Result{}, fmt.Errorf("%s, %s, seed %d: %w", s.Name, a.Name, seed, err)
	}
	return result, nil
}

func play(s Scenario, a Arm, sessions []workload.Session, seed uint64) (Result, error) {
	opener := newOpener(s, sessions)
	if a.order != nil {
		sessions = a.order(sessions, s)
		opener.sessions = sessions
	}
	arm, err := a.open(situation{fleet: s.Fleet, sessions: sessions, random: rand.New(rand.NewPCG(seed, armStream))})
	if err != nil {
		return Result{}, err
	}
	r := &run{
		sessions: sessions, index: make(map[string]int, len(sessions)), trips: make([]trip, len(sessions)),
		arm: arm, opener: opener, meter: newMeter(len(s.Fleet)),
	}
	for i, one := range sessions {
		r.index[one.ID] = i
		r.trips[i].at = -1
	}
	for _, b := range s.Fleet {
		r.engines = append(r.engines, model.New(b.Engine))
	}
	if err := r.play(); err != nil {
		return Result{}, err
	}
	return r.result(s, a, seed), nil
}

// armStream keeps the arm's chance apart from that of the workload of the same seed.
const armStream = math.MaxUint64 - 1

func (r *run) play() error {
	r.open(r.opener.begin())
	for {
		at, replica, ok := r.next()
		if !ok {
			return nil
		}
		r.meter.pass(at - r.now)
		r.now = at
		if err := r.step(replica); err != nil {
			return err
		}
	}
}

// step does what is due now: at a replica, or where that is noReplica at the first timer.
func (r *run) step(replica int) error {
	if replica == noReplica {
		return r.start(r.timers.pop())
	}
	for _, e := range r.engines[replica].Advance(r.now) {
		if e.Kind != model.Finished {
			continue
		}
		if err := r.finish(replica, e); err != nil {
			return err
		}
	}
	r.meter.look(replica, r.engines[replica])
	return nil
}

const noReplica = -1

// next returns the earliest thing to come: at a replica, or noReplica for the first timer.
// Replicas go first, in their order, so that a slot freed at this moment is seen as free.
func (r *run) next() (at time.Duration, replica int, ok bool) {
	at, replica = math.MaxInt64, noReplica
	for i, e := range r.engines {
		if t, busy := e.NextEvent(); busy && t < at {
			at, replica, ok = t, i, true
		}
	}
	if t, set := r.timers.due(); set && t < at {
		return t, noReplica, true
	}
	return at, replica, ok
}

func (r *run) open(from, until int) {
	for i := from; i < until; i++ {
		opened := r.opener.when(i, r.now)
		r.trips[i].opened = opened
		r.timers.set(i, opened)
	}
}

// start sends a session's next turn to the replica that the arm names.
func (r *run) start(session int) error {
	trip, one := &r.trips[session], &r.sessions[session]
	at, err := r.arm.acquire(session, r.now)
	if err != nil {
		return fmt.Errorf("session %s turn %d: %w", one.ID, trip.turn, err)
	}
	if trip.at >= 0 && trip.at != at {
		r.meter.moves++
	}
	trip.at = at
	turn := one.Turns[trip.turn]
	err = r.engines[at].Submit(r.now, model.Request{
		ID: one.ID, Session: one.ID, PromptTokens: turn.Prompt, OutputTokens: turn.Output,
	})
	if err != nil {
		return fmt.Errorf("session %s turn %d: %w", one.ID, trip.turn, err)
	}
	r.meter.sent(at, turn)
	r.meter.look(at, r.engines[at])
	return nil
}

// finish ends a session's turn, and the session with its last one.
func (r *run) finish(replica int, e model.Event) error {
	session := r.index[e.ID]
	trip, one := &r.trips[session], &r.sessions[session]
	if err := r.arm.release(session, r.now); err != nil {
		return fmt.Errorf("session %s turn %d: %w", one.ID, trip.turn, err)
	}
	r.meter.done(replica, e)
	done := one.Turns[trip.turn]
	trip.turn++
	if trip.turn < len(one.Turns) {
		due := one.Arrival + one.Turns[trip.turn].NotBefore
		if r.opener.kind != ByArrival {
			due = 0 // the recorded times of a trace mean nothing in another rhythm
		}
		r.timers.set(session, max(r.now+done.ToolGap, due))
		return nil
	}
	if err := r.arm.end(session, r.now); err != nil {
		return fmt.Errorf("session %s: %w", one.ID, err)
	}
	r.meter.ended(r.now - trip.opened)
	r.open(r.opener.ended())
	return nil
}
