// The manager is the operator and the lease router of inferencepools.inference.berthmaster.io in
// one process: flags and wiring, nothing else.
package main
