package execlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// DefaultSyncInterval is how often a Writer fsyncs unless told otherwise.
const DefaultSyncInterval = 100 * time.Millisecond

// file is the part of *os.File that a Writer uses.
type file interface {
	io.WriteCloser
	Sync() error
}

// Writer appends records, of an engine or of a client, to one file. It is safe for concurrent use.
type Writer struct {
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	state writerState // guarded by mu
}

type writerState struct {
	file  file
	dirty bool
	err   error // the first failure to sync; sticky, since lines may be lost
}

// Open appends to the file at path, creating it if need be, and fsyncs it every interval while there is
// something new; 0 means DefaultSyncInterval. The caller owns the Writer and must Close it.
func Open(path string, interval time.Duration) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open execution log: %w", err)
	}
	if err := endLastLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("repair execution log %s: %w", path, err), f.Close())
	}
	return newWriter(f, interval), nil
}

// endLastLine puts a newline behind a line that a crash has torn, so that the next one stands alone.
func endLastLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = f.Write([]byte("\n"))
	return err
}

func newWriter(f file, interval time.Duration) *Writer {
	if interval == 0 {
		interval = DefaultSyncInterval
	}
	w := &Writer{stop: make(chan struct{}), done: make(chan struct{}), state: writerState{file: f}}
	go w.syncEvery(interval)
	return w
}

func (w *Writer) syncEvery(interval time.Duration) {
	defer close(w.done)
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			w.mu.Lock()
			w.state.sync()
			w.mu.Unlock()
		}
	}
}

func (s *writerState) sync() {
	if !s.dirty {
		return
	}
	s.dirty = false
	if err := s.file.Sync(); err != nil && s.err == nil {
		s.err = fmt.Errorf("sync execution log: %w", err)
	}
}

// Append writes one Record or ClientRecord as one line. The line has reached the operating system when it
// returns.
func (w *Writer) Append(record any) error {
	line, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode execution record: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.dirty = true
	if _, err := w.state.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("append execution record: %w", err)
	}
	return w.state.err
}

// Close fsyncs and closes the file. It reports the first failure to sync, an earlier one included.
func (w *Writer) Close() error {
	close(w.stop)
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.sync()
	return errors.Join(w.state.err, w.state.file.Close())
}
