// Command takeover measures how long nobody grants leases when the leader of two managers goes
// away. A real API server, two managers with their default flags and an engine run on this
// machine; clients ask for leases all the time, at the address of both. It prints
//
//	figure takeover_seconds        the leader is killed
//	figure takeover_seconds_clean  the leader is asked to end
//
// each the longest time between two grants around the event, the median of some rounds.
package main
