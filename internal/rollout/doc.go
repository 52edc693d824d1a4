// Package rollout plans how a pool moves from one version of its weights to another.
//
// Decide is a pure function: from what is asked (Ask), what is seen (Backend) and the time it makes
// a Plan, which says what the router must be told, which one call each engine needs next, and
// whether the version may be published. Nothing is remembered between two plans: how far a rollout
// has come is read from the engines. Whoever stops after any step, and begins anew with what the
// engines and the status say, ends where the other would have ended.
//
// Order, for one engine: it gets no leases any more, it is drained or paused, its weights are
// updated, its version is read again, and only then does it generate again; it gets leases once the
// pool admits its version. For the pool: one version is published, in one step, after enough
// engines were read on it.
//
// Invariants, which the tests check over every state of pools of up to four backends:
//
//  1. An engine that must be clear first (a barrier by drain or abort, and Rolling) is not updated
//     while anything is counted or unknown there.
//  2. A cache is flushed only on an engine on which nothing is counted or unknown, and that gets no
//     leases.
//  3. A version is published only if every backend was seen on it, or, with Proceed, as many as
//     minReadyPercent asks.
//  4. What others paused, and what the spec wants paused, is not continued.
//  5. Under a barrier no engine is continued before the pool has its version, and no engine ever
//     before its own version was read again.
//  6. Rolling takes at most maxUnavailable backends away that would serve.
//  7. At most two versions are admissible, and a second one only under Rolling.
//  8. An engine with a call under way gets no other.
//  9. An engine that failed is not asked again before its back-off has passed.
//  10. External never changes the weights of an engine.
//
// The package imports the standard library only.
package rollout
