package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// inMemory is how much of a body is held in memory, in bytes; the rest goes to a file.
const inMemory = 64 << 10

// errBodyTooLarge is returned by a spool that is full.
var errBodyTooLarge = errors.New("the body is too large")

// spool holds a request's body between its arrival and its sending. It is filled once and then
// read; free ends it.
type spool struct {
	dir  string
	max  int64
	mem  []byte
	file *os.File // nil while memory is enough
	size int64
}

// Write takes the next piece. It fails with errBodyTooLarge beyond the maximum.
func (s *spool) Write(p []byte) (int, error) {
	if s.size+int64(len(p)) > s.max {
		return 0, errBodyTooLarge
	}
	n := 0
	if s.file == nil {
		n = min(len(p), inMemory-len(s.mem))
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
	s.mem = nil
	if s.file != nil {
		_ = s.file.Close() // the file has no name, and nobody reads it again
		s.file = nil
	}
}
