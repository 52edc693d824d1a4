// Command chaos plays sessions on a local system with two managers and, round after round, takes
// the leader away: killed, stopped for longer than its lease, or asked to end. Afterwards it finds
// out from the engines' own records whether any turn was executed twice, and whether every count
// is back at zero.
package main
