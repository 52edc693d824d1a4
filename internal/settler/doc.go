// Package settler carries out what a pool's router needs asked of the engines: to abort, by rid,
// executions that no client answers for, and to show their load, which may prove that nothing of
// before runs any more.
//
// The router decides what to ask and what an answer means; the settler only carries. Each engine
// is asked by a goroutine of its own, one call at a time, bounded in time: an engine that hangs
// delays no other engine's answers, and no other pool's, since each pool has a settler.
//
// Its rounds are also the router's clock: a router knows no timers.
//
// A call that fails is simply not answered. The router asks again, at its own pace.
package settler
