package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// stage is where lines for people go, each behind the time since the start. It
// is safe for concurrent use.
type stage struct {
	begun time.Time

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

func newStage(out io.Writer) *stage { return &stage{begun: time.Now(), out: out} }

// say shows one line.
func (s *stage) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.begun).Seconds(), line)
}

// show shows a text of several lines as it is.
func (s *stage) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n%s\n", text)
}
