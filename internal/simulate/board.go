package simulate

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// board is what the baseline pickers see: counts per replica, kept by sticky.
type board struct {
	situation
	outstanding []int64 // turns that run
	sessions    []int64 // sessions that live there
	known       []int64 // output tokens of all sessions ever placed there
	placed      int     // sessions placed so far
	groups      map[string]int
}

// picker chooses the home of a session that has none.
type picker func(b *board, s *workload.Session) int

// sticky places a session once, by its picker, and keeps it there.
type sticky struct {
	board
	pick picker
	home []int // of a session; -1: not placed
}

// pickOnce makes the sticky placer of a picker.
func pickOnce(pick picker) func(situation) (placer, error) {
	return func(given situation) (placer, error) {
		n := len(given.fleet)
		s := &sticky{
			board: board{
				situation:   given,
				outstanding: make([]int64, n),
				sessions:    make([]int64, n),
				known:       make([]int64, n),
				groups:      make(map[string]int),
			},
			pick: pick,
			home: make([]int, len(given.sessions)),
		}
		for i := range s.home {
			s.home[i] = -1
		}
		return s, nil
	}
}

func (s *sticky) acquire(session int, _ time.Duration) (int, error) {
	if s.home[session] < 0 {
		one := &s.board.situation.sessions[session]
		at := s.pick(&s.board, one)
		s.home[session] = at
		s.board.sessions[at]++
		s.known[at] += int64(one.OutputTokens())
		s.placed++
	}
	at := s.home[session]
	s.outstanding[at]++
	return at, nil
}

func (s *sticky) release(session int, _ time.Duration) error {
	s.outstanding[s.home[session]]--
	return nil
}

func (s *sticky) end(session int, _ time.Duration) error {
	s.board.sessions[s.home[session]]--
	return nil
}
