package server

import (
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
)

// backendAnswer says where to send a request.
type backendAnswer struct {
	Name        router.BackendName `json:"name"`
	Incarnation router.Incarnation `json:"incarnation"`
	// URL never ends in a slash.
	URL string `json:"url"`
}

// leaseAnswer is a lease as its holder sees it.
type leaseAnswer struct {
	RequestID     router.RequestID `json:"requestID"`
	Backend       backendAnswer    `json:"backend"`
	RID           router.RID       `json:"rid"`
	WeightVersion router.Version   `json:"weightVersion"`
	Epoch         router.Epoch     `json:"epoch"`
	Term          router.Term      `json:"term"`
	TTLSeconds    int64            `json:"ttlSeconds"`
	StartSeconds  int64            `json:"startSeconds"`
	Token         string           `json:"token"`
}

func (s *Server) leaseOf(g *router.Grant) leaseAnswer {
	c := &g.Claim
	return leaseAnswer{
		RequestID: c.Request, Backend: backendAnswer{c.Backend, c.Incarnation, g.URL}, RID: c.RID,
		WeightVersion: c.Version, Epoch: c.Epoch, Term: c.Term, TTLSeconds: int64(g.TTL.Seconds()),
		StartSeconds: int64(g.StartWindow.Seconds()), Token: string(s.tokens.Load().append(nil, c)),
	}
}

// acquire is POST leases.
func (s *Server) acquire(w http.ResponseWriter, r *http.Request, c *call) {
	raw, err := readBody(w, r, s.limits.BodyBytes)
	if err != nil {
		s.refuse(w, err)
		return
	}
	body, err := decodeAcquire(raw)
	if err != nil {
		s.refuse(w, err)
		return
	}
	g, err := s.grant(w, r, c, &body)
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, grantStatus(&g), s.leaseOf(&g))
}

// grantStatus: "201 new, 200 the same again".
func grantStatus(g *router.Grant) int {
	if g.Again {
		return http.StatusOK
	}
	return http.StatusCreated
}

// grant makes an acquire, waiting for it if the body asks so.
func (s *Server) grant(w http.ResponseWriter, r *http.Request, c *call, body *acquireBody) (router.Grant, error) {
	req, err := s.requestOf(r, c, body)
	if err != nil {
		return router.Grant{}, err
	}
	if body.WaitSeconds == 0 {
		return c.table.Acquire(req, s.clock())
	}
	return s.acquireWaiting(w, r, c, req, body.WaitSeconds)
}

// requestOf checks what the router cannot: the token, the time to wait and the caller.
func (s *Server) requestOf(r *http.Request, c *call, body *acquireBody) (router.Request, error) {
	req := body.request()
	if err := req.Validate(); err != nil {
		return req, err
	}
	if err := s.checkWait(body.WaitSeconds); err != nil {
		return req, err
	}
	if err := s.authorize(r, c.pool, req.Sender); err != nil {
		return req, err
	}
	if body.Token == "" {
		return req, nil
	}
	claim, err := s.claim(body.Token)
	if err != nil {
		return req, err
	}
	req.Prior = &claim
	return req, nil
}

// claim verifies a token.
func (s *Server) claim(token string) (router.Claim, error) {
	c, err := s.tokens.Load().verify(token)
	if err != nil {
		return c, &router.Refusal{
			Reason: router.ReasonTokenInvalid, Field: "token",
			Detail: "the token was not made by this router, or under a key that is no longer in use",
		}
	}
	return c, nil
}

// holder verifies that token speaks of the lease that the path names, and its sender for the
// caller.
func (s *Server) holder(r *http.Request, c *call, token string) (router.Claim, error) {
	if token == "" {
		return router.Claim{}, invalid("token", "token is required: it is in the answer that granted the lease")
	}
	claim, err := s.claim(token)
	if err != nil {
		return claim, err
	}
	if string(claim.Request) != c.id {
		return claim, &router.Refusal{Reason: router.ReasonRequestConflict, Field: "token", Detail: "the token is of another request"}
	}
	return claim, s.authorize(r, c.pool, claim.Sender)
}

// renewAnswer answers renew.
type renewAnswer struct {
	RequestID    string      `json:"requestID"`
	TTLSeconds   int64       `json:"ttlSeconds"`
	StartSeconds int64       `json:"startSeconds"`
	Mixed        bool        `json:"mixed"`
	State        stateAnswer `json:"state"`
}

// stateAnswer is what a holder should know about its pool.
type stateAnswer struct {
	Epoch     router.Epoch   `json:"epoch"`
	Term      router.Term    `json:"term"`
	Published router.Version `json:"publishedVersion"`
	Leasing   router.Leasing `json:"leasing"`
	Access    router.Access  `json:"access"`
	Failed    bool           `json:"failed"`
}

// renew is POST leases/{requestID}/renew.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, c *call) {
	raw, err := readBody(w, r, s.limits.BodyBytes)
	if err != nil {
		s.refuse(w, err)
		return
	}
	var body renewBody
	if err := decodeBody(raw, &body); err != nil {
		s.refuse(w, err)
		return
	}
	claim, err := s.holder(r, c, body.Token)
	if err != nil {
		s.refuse(w, err)
		return
	}
	begun := router.NotStarted
	if body.Started {
		begun = router.Started
	}
	v, err := c.table.Renew(claim, begun, s.clock())
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, http.StatusOK, renewAnswer{
		RequestID: c.id, TTLSeconds: int64(v.TTL.Seconds()), StartSeconds: int64(v.StartWindow.Seconds()), Mixed: v.Mixed,
		State: stateAnswer(v.Pool),
	})
}
