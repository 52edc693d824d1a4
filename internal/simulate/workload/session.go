package workload

import "time"

// Session is one trajectory of an agent: turns that follow each other and share a growing
// context.
type Session struct {
	// ID names the session. It is unique in its workload and a valid session id of the
	// lease protocol.
	ID string
	// Group names the siblings sampled from one prompt. Empty: no siblings.
	Group string
	// Arrival is when the session may open, counted from the start of the workload.
	Arrival time.Duration
	// Turns are the session's requests, in order. A session has at least one.
	Turns []Turn
}

// Turn is one generation request of a session.
type Turn struct {
	// Prompt is the number of tokens sent: the history of the session and what is new.
	Prompt int
	// Fresh is how many of the Prompt tokens no earlier turn of the session has shown an
	// engine, counting what the engine itself generated as shown. It is at least 1, and
	// equal to Prompt in the first turn.
	Fresh int
	// Output is the number of tokens generated, at least 1.
	Output int
	// ToolGap is the pause between the end of this turn and the start of the next one. It
	// is 0 in traces, which do not tell tool time from service time.
	ToolGap time.Duration
	// NotBefore is the earliest start of this turn, counted from the session's Arrival.
	// Traces carry the recorded arrival here; it is 0 in generated workloads.
	NotBefore time.Duration
}

// OutputTokens returns the tokens that all turns of the session generate.
func (s Session) OutputTokens() int {
	total := 0
	for _, turn := range s.Turns {
		total += turn.Output
	}
	return total
}

// Context returns the tokens in the session's context after its last turn.
func (s Session) Context() int {
	last := s.Turns[len(s.Turns)-1]
	return last.Prompt + last.Output
}

// Requests returns the number of turns in all sessions.
func Requests(sessions []Session) int {
	total := 0
	for _, s := range sessions {
		total += len(s.Turns)
	}
	return total
}
