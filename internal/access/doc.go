// Package access says who may call the manager's ports, by asking the API server: who a bearer token
// belongs to (TokenReview), and whether that caller may do what it asks (SubjectAccessReview).
//
// # What is asked
//
//   - A call that takes, renews or releases leases, ends a session or goes through the proxy:
//     may the caller create inferencepools/leases of the pool's name and namespace?
//   - A call that only reads, the watch included: may it get them?
//   - Metrics: may it get the path /metrics, which is no resource?
//
// A sender with subjects is besides that for those only; the pool's table knows them.
//
// # What is remembered, and for how long
//
// Answers are kept in two caches that are bounded in number and bytes, refusals too, so that a caller who asks a thousand times a
// second costs the API server one question a minute, and one without rights costs it little. Whoever
// loses a right is refused within Limits.Allowed of it, and a token is never good beyond its own expiry;
// a call that lasts, as a generation in the proxy does, goes by the rights of whom its token belonged to (Gate.Admit).
// While the API server cannot be asked, what it last allowed stays allowed for Limits.Grace, since
// generations that run would be lost otherwise; what it has not allowed is not.
// Nothing is invalidated in between: a restart forgets everything.
//
// Questions are kept as digests only: no part of a request is kept with an answer, and tokens appear in no
// log, error or metric.
//
// # Who waits
//
// Calls wait for an answer in a room of bounded size, of which one address has its share only, and questions
// wait for one of a few turns, which addresses take in order. Whoever finds no place is told to ask again at once.
// A question that nobody waits for any more leaves the line; one that is being asked goes on.
package access
