// Package controller keeps each pool's router in step with its spec and with the cluster, and
// tells in the pool's status what it found and did.
//
// A reconcile observes (all reads), decides (a pure function of what was seen and the time),
// applies (named steps, each idempotent) and reports (one status write). Nothing in it waits for
// an engine: the prober and the settler talk to engines and tell the router's table, and the desk
// gives them orders; what they learn wakes the reconciler.
//
// # Authority
//
// A tenure is this process's time in charge of one pool. It begins by a live read of the pool and
// a write of term+1 to its status that carries the resource version read, and only then may the
// table grant. It ends with the pool, or with the sight of a higher term in the status, after which
// this process writes nothing to the pool again.
//
// # Facts
//
// Some fields of the status are facts: term, lives, startSecondsHighWater, failure, and for a
// backend the incarnation of a static endpoint, drainStartTime, isolationStartTime, pausedBy and
// pauseMode. A fact is written at once and before the act that it records: before a drain is handed to the router, a
// release that failed the pool is answered. Everything else in the status is derived anew each
// time, and its writes are merged to one a second.
//
// # Pauses
//
// An engine is paused in this order: the fact that we do is written, the router grants no lease there
// any more, probes sent before count no more, and the engine is told. It goes on in the other order:
// the engine answers, the fact is taken back, the router grants. The fact is all that has to survive
// this process: with it, an engine whose answer nobody remembers is told again; without it, an engine
// that is paused was paused by somebody else and is not continued. While a fact stands the pool bears
// a finalizer, and its deletion waits, within a bound, for the engines to go on.
//
// # When an engine process has ended
//
// The router frees what it counts on an incarnation when told that the process has ended. The
// only proofs from the cluster are the kubelet's: the container ID is reported terminated, or a
// later ID is reported for the same container of the pod of the same UID. The handlers of pod
// events take them, from the last state of a deleted pod too. A pod that is missing, refuses
// connections or has been replaced by one of the same name proves nothing: its incarnation stays,
// as Retired, until it is proven idle or a person names it in spec.confirmedGone.
package controller
