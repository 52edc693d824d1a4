// Command lease measures the lease API over HTTP against an empty handler. It prints
//
//	figure http_lease_vs_noop       leases per second over what an empty handler reaches, 1 is equal
//	figure http_lease_p99_vs_noop   p99 latency of a call at half load, over that of an empty handler
//	figure waiters_wake_us          from sending the release that frees a place to the answer of the
//	                                client that waited for it, median
//
// A lease is an acquire and its release. The empty handler gets the same two requests, on an
// http.Server with the same settings, and gives back as many bytes with the same statuses,
// without looking at anything. Each server is a process of its own, and so is the load, which
// speaks HTTP by hand: a load generator that costs more than the server would make any server
// look like the empty one. Rounds alternate between the two servers and each round is compared
// with its neighbour, since a shared machine drifts.
//
// Ended leases are kept for ten seconds instead of the default fifteen minutes, so that the
// number of records is steady while it is measured.
package main
