package server

import (
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// poolAnswer is the live view of a pool.
type poolAnswer struct {
	UID              router.PoolUID `json:"uid"`
	Epoch            router.Epoch   `json:"epoch"`
	Term             router.Term    `json:"term"`
	Leasing          router.Leasing `json:"leasing"`
	PublishedVersion router.Version `json:"publishedVersion"`
	TargetVersion    router.Version `json:"targetVersion"`
	Failure          *failureAnswer `json:"failure,omitempty"`
	Sessions         int            `json:"sessions"`
	Requests         int            `json:"requests"`
	Waiting          int            `json:"waiting"`
	Queues           []queueView    `json:"queues"`
	Backends         []backendView  `json:"backends"`
	Senders          []senderView   `json:"senders"`
}

// failureAnswer is why a pool grants nothing any more.
type failureAnswer struct {
	RequestID   router.RequestID   `json:"requestID"`
	SessionID   router.SessionID   `json:"sessionID"`
	Backend     router.BackendName `json:"backend"`
	Incarnation router.Incarnation `json:"incarnation"`
	Time        time.Time          `json:"time"`
}

// backendView is one incarnation of the live view.
type backendView struct {
	Name          router.BackendName `json:"name"`
	Incarnation   router.Incarnation `json:"incarnation"`
	URL           string             `json:"url"`
	Admissible    bool               `json:"admissible"`
	Reason        string             `json:"reason"`
	Health        router.Health      `json:"health"`
	Drain         router.Drain       `json:"drain"`
	Drained       bool               `json:"drained"`
	Engine        router.EngineMode  `json:"engine"`
	Retired       bool               `json:"retired"`
	Capacity      int64              `json:"capacity"`
	Outstanding   int64              `json:"outstanding"`
	Held          int64              `json:"held"`
	Sessions      int64              `json:"sessions"`
	UnknownLoad   bool               `json:"unknownLoad"`
	Settling      bool               `json:"settling"`
	Isolated      bool               `json:"isolated"`
	WeightVersion router.Version     `json:"weightVersion"`
}

// senderView is one sender of the live view.
type senderView struct {
	Name          router.SenderName `json:"name"`
	Access        router.Access     `json:"access"`
	MinGeneration int64             `json:"minGeneration"`
	Counted       int64             `json:"counted"`
	Fenced        bool              `json:"fenced"`
}

// live is GET of the pool.
func (s *Server) live(w http.ResponseWriter, r *http.Request, c *call) {
	snap := c.table.Snapshot(s.clock())
	s.answer(w, c.pool, viewOf(&snap))
}

func viewOf(v *router.Snapshot) poolAnswer {
	out := poolAnswer{
		UID: v.Pool, Epoch: v.Epoch, Term: v.Term, Leasing: v.Leasing, PublishedVersion: v.Published, TargetVersion: v.Target,
		Failure: failureOf(v.Failure), Sessions: v.Sessions, Requests: v.Requests, Waiting: v.Waiting, Queues: queuesOf(v),
		Backends: make([]backendView, 0, len(v.Backends)), Senders: make([]senderView, 0, len(v.Senders)),
	}
	for i := range v.Backends {
		out.Backends = append(out.Backends, backendViewOf(&v.Backends[i]))
	}
	for _, e := range v.Senders {
		out.Senders = append(out.Senders, senderView(e))
	}
	return out
}

func failureOf(f *router.Failure) *failureAnswer {
	if f == nil {
		return nil
	}
	return &failureAnswer{RequestID: f.Request, SessionID: f.Session, Backend: f.Backend, Incarnation: f.Incarnation, Time: f.Time}
}

func backendViewOf(b *router.BackendSnapshot) backendView {
	return backendView{
		Name: b.Name, Incarnation: b.Incarnation, URL: b.URL, Admissible: b.Admissible, Reason: b.Reason, Health: b.Health,
		Drain: b.Drain, Drained: b.Drained, Engine: b.Engine, Retired: b.Retired,
		Capacity: b.Capacity, Outstanding: b.Outstanding, Held: b.Held,
		Sessions: b.Sessions, UnknownLoad: b.UnknownLoad, Settling: b.Settling, Isolated: b.Isolated, WeightVersion: b.Version,
	}
}

// sessionAnswer explains where a session lives.
type sessionAnswer struct {
	SessionID router.SessionID  `json:"sessionID"`
	Sender    router.SenderName `json:"sender"`
	// Backend is absent while the session has no home.
	Backend      *backendRef  `json:"backend,omitempty"`
	ActiveLeases int64        `json:"activeLeases"`
	Choice       choiceAnswer `json:"choice"`
}

// choiceAnswer is how the home was chosen, with the scores at that time.
type choiceAnswer struct {
	Why        string       `json:"why"`
	Candidates int64        `json:"candidates"`
	Chosen     scoreAnswer  `json:"chosen"`
	RunnerUp   *scoreAnswer `json:"runnerUp,omitempty"`
}

// scoreAnswer is what a backend looked like before the choice.
type scoreAnswer struct {
	Backend     router.BackendName `json:"backend"`
	Outstanding int64              `json:"outstanding"`
	Capacity    int64              `json:"capacity"`
	Sessions    int64              `json:"sessions"`
}

// session is GET sessions/{sessionID}.
func (s *Server) session(w http.ResponseWriter, r *http.Request, c *call) {
	v, err := c.table.Session(router.SessionID(c.id))
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	out := sessionAnswer{
		SessionID: v.Session, Sender: v.Sender, ActiveLeases: v.Active,
		Choice: choiceAnswer{Why: v.Choice.Why, Candidates: v.Choice.Candidates, Chosen: scoreAnswer(v.Choice.Chosen)},
	}
	if v.Backend != "" {
		out.Backend = &backendRef{v.Backend, v.Incarnation}
	}
	if second := scoreAnswer(v.Choice.RunnerUp); second.Backend != "" {
		out.Choice.RunnerUp = &second
	}
	s.answer(w, c.pool, out)
}

// endSession is DELETE sessions/{sessionID}?sender=NAME, "by the session's sender".
func (s *Server) endSession(w http.ResponseWriter, r *http.Request, c *call) {
	sender := router.SenderName(r.URL.Query().Get("sender"))
	if !router.ValidID(string(sender)) {
		s.refuse(w, invalid("sender", "the query must name the session's sender: ?sender=NAME"))
		return
	}
	if err := s.authorize(r, c.pool, sender); err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	if err := c.table.EndSession(router.SessionID(c.id), sender, s.clock()); err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
