// Package client generates on the engines of an InferencePool
// (inferencepools.inference.berthmaster.io) by lease: it asks the pool's router for the right to
// send one request to one engine, sends it there directly, keeps the lease while the engine
// works, and reports how it ended. It uses the standard library only.
//
// A Pool is made once. A Session is one trajectory, whose requests go to the same engine as long
// as the pool can keep it there. Generate does the whole of one request; Acquire, Renew and
// Release are its parts, for callers that send their requests themselves.
//
// What the package keeps, so that a request is generated at most once:
//
//   - Every generation has a TCP connection of its own, dialled before the request and never
//     reused. net/http can therefore repeat nothing by itself, and an engine that closes a resting
//     connection cannot turn a request into an uncertain one.
//   - A request is begun only within the start window of its lease, counted by this process's
//     monotonic clock from the moment at which the last answered acquire or renew was sent. The
//     window is checked once more under the first byte.
//   - NotSent is reported only when no byte was written. Everything that is neither a complete
//     reply nor that is Ambiguous, or Cancelled where the caller's own context cut it.
//   - Generate makes another attempt, under a new request id, only after NotSent. Calls to the
//     router are repeated after lost answers, since they are idempotent.
//
// Errors: a refusal by the router is a *Problem, an execution that did not succeed is an
// *OutcomeError. Both answer errors.Is for the Err... variables of this package.
package client
