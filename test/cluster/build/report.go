package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// reportPeriod is how often a running build says how far it is.
const reportPeriod = 15 * time.Second

// tailLines is how much of the compiler's last words an error repeats.
const tailLines = 20

// report counts the packages that the compiler names on its standard error and
// says the number on another writer, every reportPeriod and at the end.
type report struct {
	name  string
	to    io.Writer
	start time.Time
	done  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	packages int      // guarded by mu
	partial  []byte   // guarded by mu: a line that has not ended yet
	last     []string // guarded by mu: at most tailLines
}

func newReport(name string, to io.Writer) *report {
	r := &report{name: name, to: to, start: time.Now(), done: make(chan struct{})}
	r.ended.Go(r.loop)
	return r
}

func (r *report) loop() {
	tick := time.NewTicker(reportPeriod)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-tick.C:
			r.say("building")
		}
	}
}

// Write takes what the compiler says. It never fails.
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, p...)
	for {
		line, rest, whole := bytes.Cut(r.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		r.packages++
		r.last = append(r.last, string(line))
		r.last = r.last[max(0, len(r.last)-tailLines):]
		r.partial = append([]byte(nil), rest...)
	}
}

// finish stops the periodic lines and says the final one.
func (r *report) finish() {
	close(r.done)
	r.ended.Wait()
	r.say("finished")
}

func (r *report) say(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.to, "cluster: %-8s %-14s %5d packages compiled, %s\n",
		what, r.name, r.packages, time.Since(r.start).Round(time.Second))
}

// tail returns the last words of the compiler.
func (r *report) tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.last, string(r.partial)), "\n")
}
