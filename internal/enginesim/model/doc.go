// Package model is the arithmetic of a simulated inference engine: when does which request get its first
// token and its last. It knows no clock, no goroutine and no network. Time is an argument, counted as a
// time.Duration from an origin that the caller chooses, so the same code drives the HTTP simulator in
// compressed real time and a discrete-event simulation in virtual time. Equal inputs give equal outputs.
//
// # The model
//
// An Engine is one scheduler, that is one data-parallel rank. It repeats steps, one at a time:
//
//   - A prefill step takes up to ChunkTokens prompt tokens, first of the request whose prompt is half done and
//     then of waiting requests in order of arrival, and lasts tokens/PrefillTokensPerSecond. A request whose
//     prompt is complete at the end of a step gets its first token there.
//   - A decode step gives every running request one token and lasts DecodeBase + running*DecodePerRequest.
//
// Prefill goes before decode, as in the engine that is modelled, so a long prompt stalls the others. A waiting
// request is admitted when a running slot is free and the KV cache has room for its prompt and for
// ReserveTokens more of every request that already runs.
//
// The KV cache is counted in blocks of BlockTokens. What a finished request leaves is kept for its session:
// the next request of that session skips the prefill of the part it finds there. Kept blocks are given up
// least recently used session first, its tail before its head. When nothing is left to give up, running
// requests are retracted, those with the fewest output tokens first: they lose their blocks, return to the
// head of the waiting queue, and prefill their prompt and what they had generated again.
//
// Two simplifications: a session's requests are taken to extend one another, so that a prompt shares the
// first min(kept, prompt-1) tokens with what was kept; and of parallel branches only the longest is kept.
//
// # Cost
//
// While a batch does not change its decode steps are taken together: Advance costs a few heap operations per
// request, one step per prefill chunk, and nothing per output token.
//
// # Invariants
//
//	M1  free + kept + owned blocks = all blocks, none of them negative.
//	M2  at most MaxRunning requests run or prefill.
//	M3  blocks that running requests share with a session are never given up.
//	M4  a request ends exactly once: by Finished or by Abort.
//	M5  Advance(a) then Advance(b) does the same as Advance(b).
package model
