// Command demo is the main job on one machine: it brings a local system up,
// applies a sample pool, replays a workload through it while a backend is
// drained, a sender is fenced and an engine is killed, and judges the run by
// the engines' own records. Its exit status is 0 only if it found no fault.
//
// The Makefile's demo target builds what it needs and runs it.
package main
