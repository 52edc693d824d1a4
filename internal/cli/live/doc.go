// Package live reads what a pool's router knows now: the read-only calls of the lease API. It takes
// nothing from the server's code, so that what it understands is what the published protocol says.
package live
