// Command soak runs the lease API for a long time under bad weather, and under abuse, and demands
// that nothing grows and nothing stays behind.
//
// `soak -leases N` has 32 clients take N leases over HTTP while backends flap, drain, leave and
// come back in new incarnations; some clients cut their acquires, forget their leases, or cannot
// say how they ended. Afterwards every count must be zero, and heap and goroutines in the last
// tenth must be what they were in the second.
//
// `soak -abuse` goes through the list of what a router should bear: a million distinct ids,
// sessions that never end, ids at the length limit, releases of unknown ids, ten thousand clients
// that wait.
//
// The clients are always a process of their own: this program, started again, with its
// instructions in an environment variable.
package main
