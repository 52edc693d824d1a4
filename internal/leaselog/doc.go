// Package leaselog writes what happens to leases into the log, each line with the pool, request,
// session, sender, backend and term that it concerns, so that one request's life can be read by one
// search.
package leaselog
