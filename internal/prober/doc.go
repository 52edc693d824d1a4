// Package prober watches the health, the capacity and the weight version of engines, and knows
// about pauses.
//
// One Prober serves many pools. Each incarnation of each pool has a loop of its own, so that an
// engine that accepts and never answers, or a pool of thousands, delays no other probe. What a
// loop learns is reported to a Sink as an Observation.
//
// The rules, in the order in which they win:
//
//   - A probe that was sent before a pause or a resume changes nothing after it. Pause and Resume
//     raise the target's stamp; a result that carries an older stamp is dropped, and its call is
//     cut.
//   - While we pause an engine it is not probed, and its budgets stand still.
//   - An engine whose /health answers 503 or times out while /server_info answers is
//     SuspectedPaused: somebody else paused it, or it is starting or terminating. It spends no
//     budget.
//   - A refused connection is reported as Refused at once, also one that somebody else met: Refused
//     raises the stamp too, so that no version is believed that was read before.
//   - An engine is Unhealthy after the threshold of consecutive failed probes, or once it has
//     been failing for the budget, whichever is first. Failing begins when the first failure
//     lands: an engine may rightly take its whole time-out to answer.
//   - One success makes it Healthy. Its weight version counts as confirmed only if it was read
//     since it was last Refused, Unhealthy, SuspectedPaused or paused by us.
//
// streak.go holds these rules as a pure function; target.go is the loop around it.
package prober
