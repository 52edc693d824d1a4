// Package replay plays a recorded workload through a real pool: every session at the time it was
// recorded, its turns one after another, each under a lease.
package replay
