// Package server speaks the lease protocol over HTTP (design section 6): it decodes calls,
// asks the pool's router.Table, and encodes answers and problem documents. It decides nothing
// about leases itself.
//
// # What holds for every call
//
//   - Every error is an RFC 9457 problem document with a stable reason; reasons.go maps each
//     reason to its HTTP status.
//   - A body is read up to a limit and within a time; a field that the call does not know is
//     refused by name, so that a misspelt option is never silently ignored.
//   - Ids, counts and the pool are checked before anything changes.
//   - A lease token is verified before its claim reaches the router. Whoever holds a token
//     speaks for its lease and for no other.
//
// # Waiting
//
// Three calls wait: an acquire with waitSeconds, a release that says Ambiguous, and watch.
// Each ends when its client hangs up, when the pool goes (PoolNotFound) and when the server
// stops (NoLeader with Retry-After); none outlives Server.Serve. They are counted per pool
// and bounded, so that the waiters of one pool take nothing from another.
//
// # Where it listens
//
// On loopback, unless the Config has an Authorizer; the bind address is checked before the
// first connection. Without one it answers only calls that are addressed to this machine, by Server.Addressed.
package server
