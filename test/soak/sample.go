package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
)

// twentieths: a sample is taken at each.
const twentieths = 20

// sample is the size of the process at one moment.
type sample struct {
	heap       uint64
	goroutines int
}

func (s sample) String() string {
	return fmt.Sprintf("heap %.1f MiB, %d goroutines", float64(s.heap)/(1<<20), s.goroutines)
}

// takeSample measures the live heap; what lies in a sync.Pool survives one collection.
func takeSample() sample {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{m.HeapAlloc, runtime.NumGoroutine()}
}

// What may differ between the second tenth and the last: how many records and sessions there
// are at a moment depends on how fast the machine is then.
const (
	heapFactor      = 2
	heapSlack       = 16 << 20
	goroutinesSlack = 2 * soakClients
)

// flat demands that the last tenth is no bigger than the second.
func flat(out io.Writer, samples []sample) error {
	if len(samples) < twentieths-1 {
		return fmt.Errorf("%d of %d samples were taken", len(samples), twentieths)
	}
	second, last := most(samples[2:4]), most(samples[len(samples)-2:])
	sayf(out, "second tenth: %v; last tenth: %v", second, last)
	return noBigger(second, last)
}

// noBigger demands that a later sample is no bigger than an earlier one, but for the slack.
func noBigger(second, last sample) error {
	var errs []error
	if last.heap > heapFactor*second.heap+heapSlack {
		errs = append(errs, fmt.Errorf("the heap grew from %d to %d bytes", second.heap, last.heap))
	}
	if last.goroutines > second.goroutines+goroutinesSlack {
		errs = append(errs, fmt.Errorf("goroutines grew from %d to %d", second.goroutines, last.goroutines))
	}
	return errors.Join(errs...)
}

// restSlack is what the heap at rest may keep of a run: maps keep the room that they once had.
const restSlack = 8 << 20

// asBefore demands that the heap at rest is what it was before the run, whatever its speed.
func asBefore(out io.Writer, before, after sample) error {
	sayf(out, "before: %v; at rest: %v", before, after)
	if after.heap > before.heap+restSlack {
		return fmt.Errorf("the heap at rest grew from %d to %d bytes", before.heap, after.heap)
	}
	return nil
}

// most is the greatest of each size.
func most(of []sample) sample {
	out := of[0]
	for _, s := range of[1:] {
		out = sample{max(out.heap, s.heap), max(out.goroutines, s.goroutines)}
	}
	return out
}
