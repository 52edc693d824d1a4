package enginesim

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// finishReason is why a sequence ended, in the form in which replies tell it.
type finishReason map[string]any

func reasonLength(n int) finishReason { return finishReason{"type": "length", "length": n} }

func reasonStop(matched any) finishReason { return finishReason{"type": "stop", "matched": matched} }

func reasonAbort(message string) finishReason {
	return finishReason{"type": "abort", "message": message, "status_code": nil, "err_type": nil}
}

// The messages of an abort, as clients see them.
const (
	abortedRunning = "Aborted"
	abortedWaiting = "Abort in waiting queue"
)

// plan is what one sequence is going to be, decided when its request is read.
type plan struct {
	id           string // what replies call it: the rid, with a number behind it in a batch
	rid          string // the rid of the request, for the log
	session      string
	prefixOf     string // whose kept prefix it may use and adds to: the session, or nobody
	turn         string
	trace        string // the W3C trace context of the request, for the log
	sample       int
	rank         int // -1: the engine chooses
	promptTokens int
	seed         uint64
	output       int // tokens it will generate; 0 is possible
	reason       finishReason
	stream       bool
}

// sequence is one execution behind the gate. Its fields below plan are guarded by Server.mu.
type sequence struct {
	plan
	wake chan struct{} // holds one token while there is something new to see

	started  time.Duration // engine time
	finished time.Duration
	status   sequenceStatus
	reason   finishReason // why it ended; nil before
	doomed   string       // not empty: abort with this message once the engine goes on
	ran      runState     // whether it had begun to run when the engine was last halted
	view     view
}

// sequenceStatus is where a sequence is in its life.
type sequenceStatus int

const (
	seqActive sequenceStatus = iota
	seqFinished
	seqAborted        // with what it had
	seqAbortedWaiting // before it ran
)

// runState tells, while the engine is halted, those that had run from those that had not.
type runState int

const (
	hadNotRun runState = iota
	hadRun
)

// view is a copy of how far a sequence is, for its handler.
type view struct {
	status      sequenceStatus
	tokens      int // output tokens to show
	cached      int
	retractions int
	reason      finishReason
	rank        int
	elapsed     time.Duration // engine time since its start
}

func (q *sequence) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// tokens is the output tokens of a view, from index from on.
func (q *sequence) tokens(from, to int) []int { return text.Tokens(q.seed, from, to) }
