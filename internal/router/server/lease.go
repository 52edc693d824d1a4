package server

import (
	"errors"
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// acquire is POST leases.
func (s *Server) acquire(w http.ResponseWriter, r *http.Request, c *call) {
	step := s.begin(steps.Acquire, r, c)
	req, wait, err := s.readAcquire(w, r, c)
	step.Asks(&req)
	var g router.Grant
	if err == nil {
		if wait > 0 {
			step.Waits(s.clock())
		}
		g, err = s.grant(w, r, c, req, wait)
	}
	s.granted(w, step, &g, err)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	d := s.desks.take()
	defer s.desks.back(d)
	s.desks.write(w, grantStatus(&g), appendLease(d.room[:0], &g, s.tokens.Load()))
}

// granted tells of an acquire, and the client the trace that its lease belongs to.
func (s *Server) granted(w http.ResponseWriter, step *steps.Step, g *router.Grant, err error) {
	if step == nil {
		return
	}
	step.Again = g.Again
	s.end(step, &g.Claim, err)
	if trace := s.observer.Context(step.Pool, step.Request, step.Traceparent); trace != "" && err == nil {
		w.Header().Set(steps.TraceAnswerHeader, trace)
	}
}

// readAcquire reads and checks an acquire.
func (s *Server) readAcquire(w http.ResponseWriter, r *http.Request, c *call) (router.Request, int64, error) {
	d := s.desks.take()
	defer s.desks.back(d)
	raw, err := s.readBody(w, r, c, s.limits.BodyBytes, d)
	if err != nil {
		return router.Request{}, 0, err
	}
	if err := s.forms.decodeAcquire(&d.reader, raw, &d.acquire); err != nil {
		return router.Request{}, 0, err
	}
	req, err := s.requestOf(r, c, &d.acquire)
	return req, d.acquire.WaitSeconds, err
}

// grantStatus: "201 new, 200 the same again".
func grantStatus(g *router.Grant) int {
	if g.Again {
		return http.StatusOK
	}
	return http.StatusCreated
}

// grant makes an acquire, waiting for it up to that many seconds.
func (s *Server) grant(w http.ResponseWriter, r *http.Request, c *call, req router.Request, wait int64) (router.Grant, error) {
	if wait == 0 {
		return s.grantNow(r, c, &req)
	}
	g, err := s.acquireWaiting(w, r, c, req, wait)
	if err != nil {
		return g, err
	}
	if err := s.authorize(r, c.pool, req.Sender); err != nil {
		c.table.TakeBack(&g, s.clock())
		return router.Grant{}, err
	}
	return g, nil
}

// grantNow makes an acquire that does not wait.
func (s *Server) grantNow(r *http.Request, c *call, req *router.Request) (router.Grant, error) {
	for {
		g, err := c.table.Acquire(*req, s.clock())
		if !errors.Is(err, router.ErrRightsChanged) {
			return g, err
		}
		if err := s.judge(r, c, req); err != nil {
			return g, err
		}
	}
}

// judge asks whether the caller may use the request's sender, and has the request say by which rights.
func (s *Server) judge(r *http.Request, c *call, req *router.Request) error {
	if s.authorizer == nil {
		return nil
	}
	req.Rights = c.table.Rights(req.Sender) // before: what changes meanwhile is found out when it is granted
	return s.authorize(r, c.pool, req.Sender)
}

// requestOf checks what the router cannot: the token, the time to wait and the caller.
func (s *Server) requestOf(r *http.Request, c *call, body *acquireBody) (router.Request, error) {
	req := body.Request
	if err := req.Validate(); err != nil {
		return req, err
	}
	if err := s.checkWait(body.WaitSeconds); err != nil {
		return req, err
	}
	if err := s.judge(r, c, &req); err != nil {
		return req, err
	}
	if len(body.Token) == 0 {
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
func (s *Server) claim(token []byte) (router.Claim, error) {
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
func (s *Server) holder(r *http.Request, c *call, token []byte) (router.Claim, error) {
	if len(token) == 0 {
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

// renew is POST leases/{requestID}/renew.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, c *call) {
	d := s.desks.take()
	defer s.desks.back(d)
	step := s.begin(steps.Renew, r, c)
	v, claim, err := s.extend(w, r, c, d)
	s.end(step, &claim, err)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	s.desks.write(w, http.StatusOK, appendRenewal(d.room[:0], c.id, &v))
}

func (s *Server) extend(w http.ResponseWriter, r *http.Request, c *call, d *desk) (router.Renewal, router.Claim, error) {
	raw, err := s.readBody(w, r, c, s.limits.BodyBytes, d)
	if err != nil {
		return router.Renewal{}, router.Claim{}, err
	}
	d.renew = renewBody{}
	if err := s.forms.renew.decode(&d.reader, raw, &d.renew); err != nil {
		return router.Renewal{}, router.Claim{}, err
	}
	claim, err := s.holder(r, c, d.renew.Token)
	if err != nil {
		return router.Renewal{}, claim, err
	}
	begun := router.NotStarted
	if d.renew.Started {
		begun = router.Started
	}
	v, err := c.table.Renew(claim, begun, s.clock())
	return v, claim, err
}
