// Package realpool is a pool in earnest, on loopback and in one process: a router and its API, the
// prober, the settler and simulated engines whose log says what they executed. Clients are tested
// against it where a scripted pool would only say what its script says.
package realpool
