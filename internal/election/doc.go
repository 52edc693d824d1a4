// Package election decides which replica of the manager may grant leases: it holds a Lease of
// coordination.k8s.io by the client library's elector and says until when that can be believed.
//
// # Authority
//
// A replica has authority while now is before the send time of its last successful renewal plus
// the renew deadline. The others wait for the longer lease duration, counted from when they saw
// that renewal, so two never have authority at once; test/model shows it in every interleaving.
// Both sides measure by their own monotonic clock: no two machines' clocks are compared. What the
// elector believes of itself is not used, since a process that stood still believes it for a
// moment longer than it is true; nor may it, for the same reason, clear a lock that names another.
//
// # Reigns
//
// A reign is authority without a gap. After a gap somebody else may have had authority, so what
// was concluded in an earlier reign has to be looked at anew. Reigns are numbered from 1.
package election
