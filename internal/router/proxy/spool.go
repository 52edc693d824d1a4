package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// inMemory is how much of a body is held in memory, in bytes; the rest goes to a file.
const inMemory = 64 << 10

// store is the room that the bodies of all requests share. Each body takes what it holds and gives it back.
type store struct {
	memory, files room
}

func newStore(l Limits) *store {
	return &store{memory: room{most: l.SpoolMemory}, files: room{most: l.SpoolBytes}}
}

// room is a number of bytes, some of them taken.
type room struct {
	most  int64
	taken atomic.Int64
}

// take takes n bytes, all or none.
func (r *room) take(n int64) bool {
	if r.taken.Add(n) > r.most {
		r.taken.Add(-n)
		return false
	}
	return true
}

func (r *room) back(n int64) { r.taken.Add(-n) }

// errNoRoom is returned by a spool when the bodies of others fill the store.
var errNoRoom = &router.Refusal{
	Reason: reasonSpool, RetryAfter: time.Second, Detail: "the proxy holds as many bytes of bodies as it may: try again",
}

// errBodyTooLarge is returned by a spool that is full.
var errBodyTooLarge = errors.New("the body is too large")

// spool holds a request's body between its arrival and its sending. It is filled once and then
// read; free ends it.
type spool struct {
	store *store
	dir   string
	max   int64
	mem   []byte
	file  *os.File // nil while memory is enough
	size  int64
	filed int64 // of the store's room for files
}

// Write takes the next piece. It fails with errBodyTooLarge beyond the maximum.
func (s *spool) Write(p []byte) (int, error) {
	if s.size+int64(len(p)) > s.max {
		return 0, errBodyTooLarge
	}
	n := 0
	if s.file == nil {
		if n = min(len(p), inMemory-len(s.mem)); !s.store.memory.take(int64(n)) {
			n = 0 // others have it: what comes goes to the file
		}
		s.mem = append(s.mem, p[:n]...)
	}
	if n < len(p) {
		if err := s.spill(p[n:]); err != nil {
			return n, err
		}
	}
	s.size += int64(len(p))
	return len(p), nil
}

// spill writes to the file, which has no name from the start, so that nothing of a client's prompt
// outlives the process.
func (s *spool) spill(p []byte) error {
	if !s.store.files.take(int64(len(p))) {
		return errNoRoom
	}
	s.filed += int64(len(p))
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "body-")
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
	}
	if _, err := s.file.Write(p); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// ReadAt reads what was written.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(s.mem)) {
		n = copy(p, s.mem[off:])
	}
	if n == len(p) {
		return n, nil
	}
	if s.file == nil {
		return n, io.EOF
	}
	m, err := s.file.ReadAt(p[n:], off+int64(n)-int64(len(s.mem)))
	return n + m, err
}

// part reads the bytes from one offset to another.
func (s *spool) part(from, to int64) io.Reader { return io.NewSectionReader(s, from, to-from) }

// free gives back what the spool holds. Doing it again is harmless.
func (s *spool) free() {
	s.store.memory.back(int64(len(s.mem)))
	s.store.files.back(s.filed)
	s.mem, s.filed = nil, 0
	if s.file != nil {
		_ = s.file.Close() // the file has no name, and nobody reads it again
		s.file = nil
	}
}
