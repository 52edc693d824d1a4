// Package model explores, exhaustively and in small, how managers take pools over from one
// another: every interleaving of two managers, two clients and two backends, with managers that
// crash, stop, resume and lose touch, and clients that lose answers, connections and tokens.
//
// It has two parts, because time and leases are each large enough alone.
//
//   - Election (election.go) has an explicit clock. It shows that two managers never believe at
//     the same moment that they may grant, whatever the network delays.
//   - Leases (leases.go, clients.go, engines.go) takes that as given: authority is with one manager
//     or with none. It shows that a turn is executed at most once, that a term belongs to one
//     manager and one only, that none grants under a term once a later one has granted, that a
//     backend which the manager in charge takes for empty is empty, and that no token changes that.
//
// Each part takes a Fault: one rule of the protocol, left out. The tests demand that the rules
// together hold in every reachable state, and that the exploration finds out each one that is
// missing; so no rule is there in vain, and the properties are not empty words.
package model
