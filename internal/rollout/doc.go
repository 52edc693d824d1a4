// Package rollout plans how a pool moves from one version of its weights to another.
//
// Decide is a pure function: from what is asked (Ask), what is seen (Backend) and the time it makes
// a Plan, which says what the router must be told, which one call each engine needs next, and
// whether the version is published. Nothing is remembered between two plans: how far a rollout has
// come is read from the engines. Whoever stops after any step, and begins anew with what the engines
// and the status say, ends where the other would have ended.
//
// Whoever carries a plan out does, in this order: writes the facts in the status (Published; for
// each step that a Backend field calls a fact, before the call), tells the router Leases, Published,
// Second and the Backends, and only then begins the calls, each outside of every lock and worker.
// Then it looks again: at Again, when a call is answered, and when the router wakes it.
//
// Order, for one engine: it gets no leases any more, it is drained or paused, its weights are
// updated, its version is read again, and only then does it generate again; it gets leases once the
// pool admits its version. For the pool: one version is published, in one step, after enough
// engines were read on it.
//
// Invariants, which the tests check over every state of small pools:
//
//  1. An engine that must be clear first (a barrier by drain or abort, Rolling, and whatever is
//     brought up) is not updated while anything is counted or unknown there, or may be granted,
//     unless an update of it was begun: then it was clear, and only its answer makes it known again.
//  2. A cache is flushed only on an engine that is known idle, and not frozen, or that is not paused
//     and was idle when an update of it was begun: it lets what runs end before it updates.
//  3. A version is published only if every backend asked was read on it, or, with Proceed, as many
//     as minReadyPercent asks and no other is to be waited for. At least one was.
//  4. What others paused, and what the spec wants paused, is not continued. What was not read since
//     its last update is not continued.
//  5. Under a barrier no engine that has its version is continued before the pool has it.
//  6. Rolling takes no backend out of service while maxUnavailable are out of it already.
//  7. At most two versions are admissible, and a second one only under Rolling.
//  8. An engine with a call under way gets no other.
//  9. An engine that failed is not asked again before its back-off has passed.
//  10. External never changes the weights of an engine, nor pauses one.
//
// The package imports the standard library only.
package rollout
