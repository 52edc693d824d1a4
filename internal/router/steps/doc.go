// Package steps says what happens to leases, one step at a time, to whoever observes it: the log and the
// traces. The lease API and the transparent proxy tell of their steps in the same words.
package steps
