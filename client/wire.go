package client

import "time"

// Outcome is how the client says that an execution ended.
type Outcome string

const (
	// Succeeded: a complete reply.
	Succeeded Outcome = "Succeeded"
	// Aborted: the engine's own terminal abort.
	Aborted Outcome = "Aborted"
	// NotSent: no byte was written.
	NotSent Outcome = "NotSent"
	// Rejected: a complete reply from the short list of refusals after which nothing runs.
	Rejected Outcome = "Rejected"
	// Cancelled: the client cut its own written request.
	Cancelled Outcome = "Cancelled"
	// Ambiguous: everything else.
	Ambiguous Outcome = "Ambiguous"
)

// Fate is what the router knows of an execution whose outcome left it open.
type Fate string

const (
	// FateNone: the outcome left nothing open.
	FateNone Fate = ""
	// FatePending: it may still run.
	FatePending Fate = "Pending"
	// FateDead: it is known to be gone.
	FateDead Fate = "Dead"
	// FateIsolated: it may still run, and its engine takes no leases until it does not.
	FateIsolated Fate = "Isolated"
	// FateFailed: it may still run, and the pool has failed for it.
	FateFailed Fate = "Failed"
)

// Backend is one engine, and which life of it.
type Backend struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	// URL is where to send the request; it has no trailing slash. It is not sent to the router.
	URL string `json:"url,omitempty"`
}

// AcquireRequest asks for a lease. RequestID, and all of the rest but LastBackend, Token and Wait,
// are its identity: asked again with the same, it gives the same lease.
type AcquireRequest struct {
	RequestID        string
	SessionID        string
	Sender           string
	SenderGeneration int64
	Epoch            int64
	// Executions is how many sequences the request generates; 0 is 1.
	Executions int64
	// Group is the group of sibling sessions; empty is none.
	Group string
	// LastBackend is where the session was; the zero value if that is not known.
	LastBackend Backend
	// Token is that of an earlier answer to the same request, if the caller has kept one: a router
	// that has taken over meanwhile counts the lease by it. Empty is none.
	Token string
	// Wait is how long to wait in all for a lease that cannot be given yet; 0 does not wait.
	Wait time.Duration
}

// identity is what the router tells requests apart by, on the wire.
type identity struct {
	SessionID        string `json:"sessionID"`
	Sender           string `json:"sender"`
	SenderGeneration int64  `json:"senderGeneration"`
	Epoch            int64  `json:"epoch"`
	Executions       int64  `json:"executions,omitempty"`
	Group            string `json:"groupID,omitempty"`
}

func (r AcquireRequest) identity() identity {
	return identity{r.SessionID, r.Sender, r.SenderGeneration, r.Epoch, r.Executions, r.Group}
}

type acquireBody struct {
	RequestID string `json:"requestID"`
	identity
	LastBackend *Backend `json:"lastBackend,omitempty"`
	WaitSeconds int64    `json:"waitSeconds,omitempty"`
	Token       string   `json:"token,omitempty"`
}

type leaseReply struct {
	RequestID     string  `json:"requestID"`
	Backend       Backend `json:"backend"`
	RID           string  `json:"rid"`
	WeightVersion string  `json:"weightVersion"`
	Epoch         int64   `json:"epoch"`
	Term          int64   `json:"term"`
	TTLSeconds    float64 `json:"ttlSeconds"`
	StartSeconds  float64 `json:"startSeconds"`
	Token         string  `json:"token"`
}

type renewBody struct {
	Token   string `json:"token"`
	Started bool   `json:"started,omitempty"`
}

type renewReply struct {
	TTLSeconds   float64   `json:"ttlSeconds"`
	StartSeconds float64   `json:"startSeconds"`
	Mixed        bool      `json:"mixed"`
	State        PoolState `json:"state"`
}

// PoolState is what the router says of the pool with each renewal. A word that it does not say is
// empty.
type PoolState struct {
	// Epoch and Term are the pool's and the router's.
	Epoch int64 `json:"epoch"`
	Term  int64 `json:"term"`
	// PublishedVersion is the weight version that new leases promise; empty if they promise none.
	PublishedVersion string `json:"publishedVersion"`
	// Leasing is Open, or Held while the pool gives no leases.
	Leasing string `json:"leasing"`
	// Access is Open, or Fenced while the lease's sender gets none.
	Access string `json:"access"`
	// Failed is true once the pool has failed.
	Failed bool `json:"failed"`
}

type releaseBody struct {
	Token         string  `json:"token,omitempty"`
	Outcome       Outcome `json:"outcome"`
	OutputTokens  int64   `json:"outputTokens,omitempty"`
	PromptTokens  int64   `json:"promptTokens,omitempty"`
	WeightVersion string  `json:"weightVersion,omitempty"`
}

// forgoBody releases an id for which the client holds no token.
type forgoBody struct {
	Outcome Outcome `json:"outcome"`
	identity
}

type releaseReply struct {
	Outcome Outcome `json:"outcome"`
	Fate    Fate    `json:"fate"`
	Mixed   bool    `json:"mixed"`
}

// seconds turns a number of the wire into a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
