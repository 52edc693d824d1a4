package model

import (
	"container/list"
	"time"
)

// Request is one sequence to generate.
type Request struct {
	// ID names the request; it is unique among those that have not ended.
	ID string
	// Session is whose kept prefix the request may use and adds to. Empty: nobody's.
	Session string
	// PromptTokens is the length of the whole prompt, the part that may be found in the cache included. At least 1.
	PromptTokens int
	// OutputTokens is how many tokens it generates before it ends by itself. At least 1.
	OutputTokens int
}

// EventKind says what happened to a request.
type EventKind int

// The kinds of events, in the order in which a request meets them.
const (
	// FirstToken: the prompt is processed and one token is out. It comes once, a retraction notwithstanding.
	FirstToken EventKind = iota + 1
	// Retracted: the request lost its place and its blocks and waits again.
	Retracted
	// Finished: the last token is out and the request is forgotten.
	Finished
)

// String returns the kind's name.
func (k EventKind) String() string {
	switch k {
	case FirstToken:
		return "first token"
	case Retracted:
		return "retracted"
	case Finished:
		return "finished"
	}
	return "unknown"
}

// Event is one thing that happened to one request.
type Event struct {
	At   time.Duration
	Kind EventKind
	ID   string
	// OutputTokens is how many tokens the request has generated so far.
	OutputTokens int
	// CachedTokens is how many prompt tokens it found in the cache when it was first admitted.
	CachedTokens int
	// Retractions is how often it has been retracted so far.
	Retractions int
	// Queued is how long it waited for its first admission.
	Queued time.Duration
}

// Phase is where a request is in its life.
type Phase int

// The phases of a request. Unknown is the phase of a request that never was or has ended.
const (
	Unknown Phase = iota
	Waiting
	Prefilling
	Running
)

// Progress is a copy of what the engine knows about one request.
type Progress struct {
	Phase        Phase
	OutputTokens int
	CachedTokens int
	Retractions  int
}

// request is the engine's own record of a Request.
type request struct {
	Request
	seq         int // order of submission, which breaks every tie
	phase       Phase
	arrived     time.Duration
	queued      time.Duration
	admitted    bool // whether it has ever left the queue, which fixes cached and queued
	cached      int  // reported: prompt tokens found at the first admission
	retractions int

	place *list.Element // in the waiting queue, while Waiting

	hit  int    // tokens shared with entry, a multiple of the block size
	own  int    // tokens in blocks of its own; while Running, as of startStep
	left int    // prompt tokens still to prefill, while Prefilling
	turn int    // of left: tokens in the step in progress
	from *entry // the session's kept prefix that hit lies in; nil without a hit

	generated  int // output tokens; while Running, as of startStep
	startStep  int // the engine's decode step count when it began to run
	finishStep int // the step count at which it has all its tokens
	index      int // in the running heap
}

func (r *request) event(at time.Duration, k EventKind) Event {
	return Event{
		At: at, Kind: k, ID: r.ID,
		OutputTokens: r.generated, CachedTokens: r.cached, Retractions: r.retractions,
		Queued: r.queued,
	}
}
