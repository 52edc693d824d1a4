package router

import "time"

// Snapshot is a copy of what a pool's table knows, for status, metrics and the live view.
type Snapshot struct {
	Pool      PoolUID
	Epoch     Epoch
	Term      Term
	Leasing   Leasing
	Published Version
	Target    Version
	// Failure is nil while the pool has not failed.
	Failure *Failure
	// Backends lists current members first, then retired incarnations with something counted.
	Backends []BackendSnapshot
	Senders  []SenderSnapshot
	Sessions int
	// Requests is the number of request records kept, ended ones included.
	Requests int
	Waiting  int
	// Queues says who waits, by sender; senders for whom nobody waits are left out.
	Queues []QueueSnapshot
	// Uncertain leases were released as Ambiguous and are neither proven dead nor given up on.
	Uncertain int
	Totals    Totals
}

// BackendSnapshot is one incarnation.
type BackendSnapshot struct {
	Name        BackendName
	Incarnation Incarnation
	URL         string
	// Retired: not in the fleet any more, kept while something is counted or unknown.
	Retired    bool
	Admissible bool
	// Reason is why it is not admissible, a stable CamelCase word; empty when it is.
	Reason      string
	Health      Health
	Drain       Drain
	Engine      EngineMode
	Capacity    int64
	Outstanding int64
	// Held is the part of Outstanding for which no client answers (lost, orphaned, ...).
	Held     int64
	Sessions int64
	// Pinned is the part of Sessions that are of pinned senders.
	Pinned int64
	// Estimate is what the engine runs beyond Outstanding, a guess for placement while
	// UnknownLoad holds.
	Estimate int64
	// UnknownLoad: executions of earlier terms may run there (R11).
	UnknownLoad bool
	Settling    bool
	Isolated    bool
	// IsolationRecorded: the isolation is in status.
	IsolationRecorded bool
	// Drained: nothing counted, no unknown load (and for Keep no resident session).
	Drained bool
	// Version is the one that it is confirmed to have; empty: none.
	Version Version
	// Excluded is the reason by which the controller keeps it from serving; empty: it does not.
	Excluded string
}

// SenderSnapshot is one sender.
type SenderSnapshot struct {
	Name          SenderName
	Access        Access
	MinGeneration int64
	// Counted executions of the sender, held ones included.
	Counted int64
	// Fenced: access is Fenced, nothing counted and no backend has unknown load (R7).
	Fenced bool
}

// QueueSnapshot is who waits for leases of one sender.
type QueueSnapshot struct {
	Sender SenderName
	// Waiting acquires.
	Waiting int
	// Longest is how long the first of them has waited.
	Longest time.Duration
}

// Failure is why a pool grants nothing any more (R13).
type Failure struct {
	Request RequestID
	Session SessionID
	Backend BackendName
	// Incarnation where the execution could not be made certain.
	Incarnation Incarnation
	Time        time.Time
	// Recorded is true once the controller has written it to status.
	Recorded bool
}

// Totals only grow; they feed metrics.
type Totals struct {
	Grants            int64
	Lost              int64
	Dead              int64
	Orphaned          int64
	WithoutAffinity   int64
	Moves             int64
	VersionMismatches int64
	OutputTokens      int64
	// Released counts first releases by outcome.
	Released map[Outcome]int64
	// Refused counts refusals of acquire by reason.
	Refused map[Reason]int64
	// Waits are those that have ended, by how.
	Waits map[WaitEnd]Waits
}

// SessionView explains where a session lives and why.
type SessionView struct {
	Session SessionID
	Sender  SenderName
	// Backend and Incarnation are empty when it has no home.
	Backend     BackendName
	Incarnation Incarnation
	// Active leases of the session now.
	Active int64
	Choice Choice
}

// Choice is how a home was chosen: the scores at the time.
type Choice struct {
	// Why is a stable word: Placed, LastBackend, Adopted, Group, Rebalanced.
	Why string
	// Candidates is the number of admissible backends looked at.
	Candidates int64
	Chosen     Score
	// RunnerUp is the next best, with an empty name when there was none.
	RunnerUp Score
}

// Score is what a backend looked like before the choice.
type Score struct {
	Backend     BackendName
	Outstanding int64
	Capacity    int64
	Sessions    int64
}
