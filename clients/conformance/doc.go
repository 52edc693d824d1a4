// Package conformance is the table of protocol scenarios that every client of the lease protocol
// passes, whatever language it is written in: what a router answers and what goes wrong on the wire,
// and what a client must then do and report.
//
// The table is JSON, in the folder scenarios. A Scenario names the rules of
// docs/client-conformance.md that it stands for. Package fakepool plays the router's and the
// engines' part of a scenario and judges; a client's own test plays the Do part, one Step after the
// other, and hands in one Report for each. The program cmd/fakepool offers the same over HTTP.
package conformance
