package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of what a trace may say. They are far above every published trace and keep sums
// of them within 64 bits.
const (
	maxTokens    = 100_000_000
	maxArrivalMS = 10 * 365 * 24 * 3600 * 1000
	maxLineBytes = 8 << 20
)

// ErrUnknownFormat is the reason why ReadFile refuses a file's name.
var ErrUnknownFormat = errors.New("unknown trace format: the name must end in .csv or .jsonl")

// InputError says where a trace could not be understood.
type InputError struct {
	// Line counts from 1, the header of a CSV included.
	Line int
	// Column is the name of the CSV column or JSON field. Empty: the line as a whole.
	Column string
	// Problem says what is wrong with it.
	Problem string
}

// Error names line and column.
func (e *InputError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
	}
	return fmt.Sprintf("line %d, column %s: %s", e.Line, e.Column, e.Problem)
}

// ReadFile reads a trace by the ending of its name: .csv as [ReadCSV] does, .jsonl as
// [ReadMooncake] does. Limit is the most requests to read; 0 or less
// reads all.
func ReadFile(path string, limit int) ([]Session, error) {
	read, err := reader(path)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer file.Close() // only read: nothing can be lost
	sessions, err := read(file, limit)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	return sessions, nil
}

func reader(path string) (func(io.Reader, int) ([]Session, error), error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return ReadCSV, nil
	case ".jsonl":
		return ReadMooncake, nil
	}
	return nil, ErrUnknownFormat
}

// request is one line of a trace, checked.
type request struct {
	session string
	arrival time.Duration
	prompt  int
	output  int
}

// collector puts the requests of a trace together to sessions.
type collector struct {
	sessions []Session
	index    map[string]int // of a session in sessions
}

func newCollector() *collector { return &collector{index: make(map[string]int)} }

// turns returns how many turns of the session have been read.
func (c *collector) turns(session string) int {
	if at, ok := c.index[session]; ok {
		return len(c.sessions[at].Turns)
	}
	return 0
}

// add appends the request to its session. Cached is how many of its prompt tokens the
// session has shown before; at least one token is always new.
func (c *collector) add(r request, cached int) error {
	at, known := c.index[r.session]
	if !known {
		at = len(c.sessions)
		c.index[r.session] = at
		c.sessions = append(c.sessions, Session{ID: r.session, Arrival: r.arrival})
	}
	s := &c.sessions[at]
	offset := r.arrival - s.Arrival
	if n := len(s.Turns); offset < 0 || n > 0 && offset < s.Turns[n-1].NotBefore {
		return fmt.Errorf("goes back in time within session %s", r.session)
	}
	s.Turns = append(s.Turns, Turn{
		Prompt:    r.prompt,
		Fresh:     max(1, r.prompt-cached),
		Output:    r.output,
		NotBefore: offset,
	})
	return nil
}

// context returns the tokens in the session's context after its last turn so far.
func (c *collector) context(session string) int {
	if at, ok := c.index[session]; ok {
		return c.sessions[at].Context()
	}
	return 0
}

// done returns the sessions by arrival, those of equal arrival as the trace had them. A
// trace without a request is refused: nobody replays nothing on purpose.
func (c *collector) done() ([]Session, error) {
	if len(c.sessions) == 0 {
		return nil, &InputError{Line: 1, Problem: "no request follows"}
	}
	slices.SortStableFunc(c.sessions, func(a, b Session) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return c.sessions, nil
}
