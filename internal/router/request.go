package router

import (
	"strconv"
	"time"
)

// MaxExecutions bounds the executions of one request.
const MaxExecutions = 4096

// identity is what makes two requests of one id the same (R3).
type identity struct {
	session    SessionID
	sender     SenderName
	generation int64
	group      GroupID
	executions int64
	epoch      Epoch
}

// Request asks for a lease.
type Request struct {
	ID               RequestID
	Session          SessionID
	Sender           SenderName
	SenderGeneration int64
	Epoch            Epoch
	// Group is optional.
	Group GroupID
	// Executions is how many sequences the request generates; 1 or more.
	Executions int64
	// LastName and LastIncarnation are honoured for sessions that the router does not
	// know; empty: the client has none.
	LastName        BackendName
	LastIncarnation Incarnation
	// Prior, if not nil, is the verified token of an earlier answer to this same request.
	Prior *Claim
	// Rights is what Table.Rights said before the caller was found entitled to the sender.
	Rights Rights
}

func (r *Request) identity() identity {
	return identity{r.Session, r.Sender, r.SenderGeneration, r.Group, r.Executions, r.Epoch}
}

// Validate names the first field that is ill-formed.
func (r *Request) Validate() error {
	if err := validateIDs(r.ID, r.Session, r.Sender, r.Group); err != nil {
		return err
	}
	switch {
	case r.Executions < 1 || r.Executions > MaxExecutions:
		return refuse(ReasonInvalid, "executions", "executions must be between 1 and "+strconv.Itoa(MaxExecutions))
	case r.SenderGeneration < 0:
		return refuse(ReasonInvalid, "senderGeneration", "senderGeneration must not be negative")
	case r.Epoch < 1:
		return refuse(ReasonInvalid, "epoch", "epoch must be 1 or more, as in the pool's spec")
	case len(r.LastName) > 253:
		return refuse(ReasonInvalid, "lastBackend.name", "lastBackend.name is longer than 253 bytes")
	case len(r.LastIncarnation) > 512:
		return refuse(ReasonInvalid, "lastBackend.incarnation", "lastBackend.incarnation is longer than 512 bytes")
	}
	return nil
}

func validateIDs(id RequestID, session SessionID, sender SenderName, group GroupID) error {
	const form = " must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}"
	switch {
	case !ValidID(string(id)):
		return refuse(ReasonInvalid, "requestID", "requestID"+form)
	case !ValidID(string(session)):
		return refuse(ReasonInvalid, "sessionID", "sessionID"+form)
	case !ValidID(string(sender)):
		return refuse(ReasonInvalid, "sender", "sender"+form)
	case group != "" && !ValidID(string(group)):
		return refuse(ReasonInvalid, "groupID", "groupID"+form)
	}
	return nil
}

// Grant is a lease as its holder sees it.
type Grant struct {
	// Claim is what the lease's token carries.
	Claim Claim
	// URL is where to send the request; it never ends in a slash.
	URL string
	// TTL is how long the lease lives from now without renewal.
	TTL time.Duration
	// StartWindow is how long after asking the client may write its request.
	StartWindow time.Duration
	// Again is true when the same lease was granted before.
	Again bool
}

// Claim is what a lease token vouches for: enough for a router that has forgotten
// everything to count the execution where it runs (R11).
type Claim struct {
	Pool        PoolUID
	Request     RequestID
	RID         RID
	Backend     BackendName
	Incarnation Incarnation
	Session     SessionID
	Sender      SenderName
	Generation  int64
	Group       GroupID
	Executions  int64
	Epoch       Epoch
	Term        Term
	Version     Version
}

func (c *Claim) identity() identity {
	return identity{c.Session, c.Sender, c.Generation, c.Group, c.Executions, c.Epoch}
}

// Start says whether the holder has begun to write its request.
type Start uint8

const (
	// NotStarted: the start window stays open.
	NotStarted Start = iota
	// Started: the request is written; the window is closed for good.
	Started
)

// Reply is what the client saw of the engine's reply, said on release. All of it is optional.
type Reply struct {
	// Version is meta_info.weight_version.
	Version Version
	// PromptTokens is meta_info.prompt_tokens: the context that a move would prefill again.
	PromptTokens int64
	// OutputTokens is meta_info.completion_tokens, summed over the executions.
	OutputTokens int64
}

// Validate names the first field out of bounds.
func (r *Reply) Validate() error {
	const most = 1 << 40
	switch {
	case len(r.Version) > 256:
		return refuse(ReasonInvalid, "weightVersion", "weightVersion is longer than 256 bytes")
	case r.PromptTokens < 0 || r.PromptTokens > most:
		return refuse(ReasonInvalid, "promptTokens", "promptTokens must be between 0 and 2^40")
	case r.OutputTokens < 0 || r.OutputTokens > most:
		return refuse(ReasonInvalid, "outputTokens", "outputTokens must be between 0 and 2^40")
	}
	return nil
}

// Renewal answers a renew.
type Renewal struct {
	TTL         time.Duration
	StartWindow time.Duration
	// Mixed says that the weights changed under the lease.
	Mixed bool
	Pool  PoolState
}

// PoolState is what a holder should know about its pool.
type PoolState struct {
	Epoch     Epoch
	Term      Term
	Published Version
	Leasing   Leasing
	Access    Access
	Failed    bool
}

// Ending answers a release.
type Ending struct {
	Outcome Outcome
	Fate    Fate
	Mixed   bool
	// Settled is false while the answer to an Ambiguous release is still being found; the
	// caller then waits with Table.AwaitFate.
	Settled bool
}
