// Package router assigns executions to backends: it leases, places, fences, drains and keeps
// count until what it leased is known to be gone. It knows no Kubernetes and no HTTP, reads no
// clock and imports the standard library only.
//
// # Words
//
// A pool has backends; one life of a backend's engine process is an incarnation, and everything
// counted, confirmed or sticky belongs to an incarnation. A session sticks to one incarnation,
// its home. A lease is the right to send one request, of one or more executions, to one
// incarnation. An execution is counted from its grant until it is known to be gone; counted
// executions for which no client answers any more (lost, cancelled, uncertain, orphaned) are
// held. An incarnation settles when it takes no leases until what is held there is gone. The
// epoch is the operator's fencing number, the term the router's own.
//
// # The lock rule
//
// All data sits in state, whose methods know no lock. Table is its lock and the only type here
// that imports sync beside the registry Pools. While the lock is held nothing logs, blocks or
// calls out of the package. Waiters and those who wait for a fate are told after it is released.
//
// # Time
//
// Every operation is given now and first brings the state up to it, so no answer depends on how
// often a timer fires. Times are kept as nanoseconds since the table was made.
//
// # Invariants
//
// state.check returns the first of these that does not hold; tests call it after every step.
//
//	I1  A backend counts exactly the executions of its leases; never a negative number.
//	I2  Placement slice and ranking hold exactly the backends that take new sessions, with their
//	    figures; the ranking is in order.
//	I3  Every record is where its phase says; heap and retention list are in order.
//	I4  Residents and active leases are counted right; exactly the sessions at rest are idle.
//	I5  A sender counts exactly the executions of its leases.
//	I6  Records, sessions and what is remembered of incarnations stay within their caps; no
//	    backend is kept of a retired one on which nothing is counted or unknown.
//	I7  Nothing of an earlier epoch is active; without a term nothing is.
//	I8  Of the members that could take leases at most a quarter, and at least one, settle at
//	    once, each for a reason.
//	I9  The certainty clock runs for exactly the uncertain executions not yet given up on.
//	I10 The queue is in order and counted right.
//	I11 Every execution that its client did not end has a fate; only the dead are uncounted
//	    without a terminal outcome.
package router
