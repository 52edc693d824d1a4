package enginesim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// errGone: the engine process has ended, and with it every connection.
var errGone = errors.New("the engine has ended")

// Server is one simulated engine. It is an http.Handler; ListenAndServe gives it a socket of its own, which
// the faults that concern connections need. Create it with New and Close it.
type Server struct {
	cfg     Config
	time    timebase
	handler http.Handler
	life    string

	kick    chan struct{} // wakes the driver
	gone    chan struct{} // closed when the process has ended, whatever the reason
	alive   context.Context
	kill    context.CancelFunc
	workers sync.WaitGroup

	pausing  chan struct{} // held by the one pause or continue at work
	updating chan struct{} // held by the one weight update at work

	mu      sync.Mutex
	st      *state        // guarded by mu
	changed chan struct{} // guarded by mu; nil unless somebody waits for a change
	exit    exit          // guarded by mu
}

// exit says whether and how the process has ended.
type exit struct {
	happened fate
	code     int
}

// fate is whether the process has ended.
type fate int

const (
	running fate = iota
	ended
)

// New starts an engine. It fails if the configuration does not pass Validate, naming the field.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("engine configuration: %w", err)
	}
	c = c.WithDefaults()
	alive, kill := context.WithCancel(context.Background())
	s := &Server{
		cfg: c, time: newTimebase(c.Clock, c.Speed), life: c.NewID(),
		kick: make(chan struct{}, 1), gone: make(chan struct{}), alive: alive, kill: kill,
		pausing: make(chan struct{}, 1), updating: make(chan struct{}, 1),
		st: newState(c),
	}
	if err := s.record(execlog.Record{Event: execlog.Boot}); err != nil {
		kill()
		return nil, err
	}
	s.handler = s.routes()
	s.goWork(s.drive)
	if c.Startup > 0 {
		s.goWork(s.warmUp)
	}
	s.change(func(*state) {
		for _, f := range c.Faults {
			s.armLocked(f)
		}
	})
	return s, nil
}

// goWork runs f beside the handlers. Close waits for it; once the engine has ended nothing new is run.
func (s *Server) goWork(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goLocked(f)
}

func (s *Server) goLocked(f func()) {
	if s.exit.happened == ended {
		return
	}
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		f()
	}()
}

// ServeHTTP answers as the engine does. When the engine ends, it cuts the connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.alive, cancel)()
	s.handler.ServeHTTP(w, r.WithContext(ctx))
	if s.alive.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// Close ends the engine as a kill does: no reply that is under way is completed and no finish is logged. It
// waits for the engine's goroutines, not for handlers. It does not close the execution log.
func (s *Server) Close() {
	s.die(137)
	s.workers.Wait()
}

// Done is closed when the engine has ended, by Close, Terminate or a fault.
func (s *Server) Done() <-chan struct{} { return s.gone }

// ExitCode is what the process of this engine exits with, once Done is closed.
func (s *Server) ExitCode() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit.code
}

func (s *Server) die(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dieLocked(code)
}

func (s *Server) dieLocked(code int) {
	if s.exit.happened == ended {
		return
	}
	s.exit = exit{happened: ended, code: code}
	s.kill()
	close(s.gone)
}

// await waits until ready says so. ready is called under the lock and may act on what it finds.
func (s *Server) await(ctx context.Context, ready func(*state) bool) error {
	for {
		s.mu.Lock()
		s.advanceLocked()
		if ready(s.st) {
			s.mu.Unlock()
			return nil
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gone:
			return errGone
		}
	}
}

// change does something to the state, up to date, and wakes those who wait for a change.
func (s *Server) change(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceLocked()
	f(s.st)
	s.changedLocked()
}

// read looks at the state, up to date.
func (s *Server) read(f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceLocked()
	f(s.st)
}

func (s *Server) changedLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// record writes a line of the execution log, filling in what all lines share.
func (s *Server) record(r execlog.Record) error {
	if s.cfg.Log == nil {
		return nil
	}
	r.Time, r.Backend, r.Life = s.cfg.Clock.Now(), s.cfg.Name, s.life
	return s.cfg.Log.Append(r)
}

// recordLocked writes a line about a sequence. An engine that cannot keep its log ends, and one that has ended
// writes no more: a killed process has no last words.
func (s *Server) recordLocked(q *sequence, r execlog.Record) {
	if s.exit.happened == ended {
		return
	}
	r.Session, r.Turn, r.RID, r.Sample = q.session, q.turn, q.rid, q.sample
	if err := s.record(r); err != nil {
		s.dieLocked(exitLog)
	}
}

func (s *Server) finishLocked(q *sequence) {
	outcome := execlog.Finished
	if q.status != seqFinished {
		outcome = execlog.Aborted
	}
	s.recordLocked(q, execlog.Record{
		Event: execlog.Finish, Outcome: outcome, OutputTokens: q.view.tokens, WeightVersion: s.st.weights.version,
	})
}

// The codes with which the engine's process ends.
const (
	exitOK    = 0
	exitLog   = 74  // the execution log could not be written
	exitCrash = 131 // the scheduler died and took the server with it
)

// warmUp ends the Starting state.
func (s *Server) warmUp() {
	if s.time.pause(s.alive, s.cfg.Startup) == nil {
		s.change(func(st *state) { st.health = up })
	}
}

// now is engine time; for what is measured outside the lock.
func (s *Server) now() time.Duration { return s.time.now() }

// Speed is how much faster than real time the engine lives.
func (s *Server) Speed() float64 { return s.cfg.Speed }
