package execlog

import "time"

// Event is what a line of an engine's log tells.
type Event string

// The events of an engine's log.
const (
	// Boot: an engine process begins to append; Life is new.
	Boot Event = "boot"
	// Start: the scheduler accepted a sequence.
	Start Event = "start"
	// Finish: the sequence ended, as Outcome says.
	Finish Event = "finish"
)

// Outcome is how an execution ended.
type Outcome string

// The outcomes of an execution. Unfinished is never written: it stands for a finish line that is missing.
const (
	Finished   Outcome = "finished"
	Aborted    Outcome = "aborted"
	Unfinished Outcome = ""
)

// Record is one line of an engine's log.
type Record struct {
	Time    time.Time `json:"time"`
	Event   Event     `json:"event"`
	Backend string    `json:"backend"`
	// Life names one process; equal in all its lines.
	Life    string `json:"life"`
	Session string `json:"session,omitempty"`
	// Turn is the client's X-Turn header, or a hash of the prompt.
	Turn string `json:"turn,omitempty"`
	// RID is the request id as the client sent it, or the engine's own if it sent none.
	RID string `json:"rid,omitempty"`
	// Sample tells the sequences of one request apart, counted from 0.
	Sample int `json:"sample"`
	// Traceparent is the W3C trace context that the request came with; only at its start.
	Traceparent   string  `json:"traceparent,omitempty"`
	Outcome       Outcome `json:"outcome,omitempty"`
	OutputTokens  int     `json:"outputTokens,omitempty"`
	WeightVersion string  `json:"weightVersion,omitempty"`
}

// ClientEvent is what a client was told about one rid.
type ClientEvent string

// The events of a client's log. Dead is the one that gives leave to execute the turn again.
const (
	Sent      ClientEvent = "sent"
	Succeeded ClientEvent = "succeeded"
	GotAbort  ClientEvent = "aborted"
	NotSent   ClientEvent = "notSent"
	Rejected  ClientEvent = "rejected"
	Cancelled ClientEvent = "cancelled"
	Ambiguous ClientEvent = "ambiguous"
	Lost      ClientEvent = "lost"
	Isolated  ClientEvent = "isolated"
	Failed    ClientEvent = "failed"
	Dead      ClientEvent = "dead"
)

// ClientRecord is one line of a client's log.
type ClientRecord struct {
	Time    time.Time   `json:"time"`
	Session string      `json:"session"`
	Turn    string      `json:"turn"`
	RID     string      `json:"rid"`
	Event   ClientEvent `json:"event"`
}
