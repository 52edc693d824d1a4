package live

import "time"

// Pool is the live state of a pool.
type Pool struct {
	UID              string    `json:"uid"`
	Epoch            int64     `json:"epoch"`
	Term             int64     `json:"term"`
	Leasing          string    `json:"leasing"`
	PublishedVersion string    `json:"publishedVersion"`
	TargetVersion    string    `json:"targetVersion"`
	Failure          *Failure  `json:"failure,omitempty"`
	Sessions         int       `json:"sessions"`
	Requests         int       `json:"requests"`
	Waiting          int       `json:"waiting"`
	Backends         []Backend `json:"backends"`
	Senders          []Sender  `json:"senders"`
}

// Failure is why the pool grants nothing any more.
type Failure struct {
	RequestID   string    `json:"requestID"`
	SessionID   string    `json:"sessionID"`
	Backend     string    `json:"backend"`
	Incarnation string    `json:"incarnation"`
	Time        time.Time `json:"time"`
}

// Backend is one incarnation of a backend.
type Backend struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	URL         string `json:"url"`
	// Admissible: it takes new sessions; Reason says why not.
	Admissible bool   `json:"admissible"`
	Reason     string `json:"reason"`
	Health     string `json:"health"`
	// Drain is Move, Keep or Abort, and empty without a drain; Drained means nothing runs there.
	Drain   string `json:"drain"`
	Drained bool   `json:"drained"`
	// Engine is Paused or Updating while the operator has it so, else empty.
	Engine  string `json:"engine"`
	Retired bool   `json:"retired"`
	// Capacity and Outstanding are executions; a capacity of 0 is not known. Held is the part of
	// Outstanding for which no client answers.
	Capacity      int64  `json:"capacity"`
	Outstanding   int64  `json:"outstanding"`
	Held          int64  `json:"held"`
	Sessions      int64  `json:"sessions"`
	UnknownLoad   bool   `json:"unknownLoad"`
	Settling      bool   `json:"settling"`
	Isolated      bool   `json:"isolated"`
	WeightVersion string `json:"weightVersion"`
}

// Sender is one sender.
type Sender struct {
	Name          string `json:"name"`
	Access        string `json:"access"`
	MinGeneration int64  `json:"minGeneration"`
	Counted       int64  `json:"counted"`
	Fenced        bool   `json:"fenced"`
}

// BackendRef names one life of a backend.
type BackendRef struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
}

// Session is where a session lives, and why.
type Session struct {
	SessionID    string      `json:"sessionID"`
	Sender       string      `json:"sender"`
	Backend      *BackendRef `json:"backend,omitempty"`
	ActiveLeases int64       `json:"activeLeases"`
	Choice       Choice      `json:"choice"`
}

// Choice is how the home was chosen, with the scores at that time.
type Choice struct {
	Why        string `json:"why"`
	Candidates int64  `json:"candidates"`
	Chosen     Score  `json:"chosen"`
	RunnerUp   *Score `json:"runnerUp,omitempty"`
}

// Score is what a backend looked like before the choice.
type Score struct {
	Backend     string `json:"backend"`
	Outstanding int64  `json:"outstanding"`
	Capacity    int64  `json:"capacity"`
	Sessions    int64  `json:"sessions"`
}

// SessionPage is a page of sessions.
type SessionPage struct {
	Sessions []SessionEntry `json:"sessions"`
	Next     string         `json:"next,omitempty"`
}

// SessionEntry is one session of a page.
type SessionEntry struct {
	SessionID    string      `json:"sessionID"`
	Sender       string      `json:"sender"`
	Backend      *BackendRef `json:"backend,omitempty"`
	ActiveLeases int64       `json:"activeLeases"`
	IdleSeconds  int64       `json:"idleSeconds"`
	Why          string      `json:"why"`
}

// Problem is a refusal of the router.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Reason string `json:"reason"`
}

func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Reason + ": " + p.Detail
	}
	return p.Reason + ": " + p.Title
}
