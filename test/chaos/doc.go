// Command chaos plays sessions on a local system with two managers, or more, while, round after round,
// something happens to them: the leader is killed, stands still, ends, or loses the API server;
// that is slow, or gone for everybody; the status is wiped; the leader is killed in a rollout of weights; two managers begin at once and find
// nothing. After each round it finds out from the engines' own records whether any turn was
// executed twice, whether every count is back at zero, and from a log of all grants whether leases
// were granted under two terms at once.
package main
