package server

import (
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// release is POST leases/{requestID}/release.
func (s *Server) release(w http.ResponseWriter, r *http.Request, c *call) {
	step := s.begin(steps.Release, r, c)
	body, claim, err := s.readRelease(w, r, c)
	step.Asks(&body.Request)
	var e router.Ending
	if err == nil {
		e, err = s.finish(w, r, c, &body, claim, step)
	}
	s.released(step, &body, &e, &claim, err)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	d := s.desks.take()
	defer s.desks.back(d)
	s.desks.write(w, http.StatusOK, appendRelease(d.room[:0], c.id, &e))
}

// readRelease reads and checks a release, and verifies its token; a claim of no request stands
// for a release without one. The body's token must not be looked at any more.
func (s *Server) readRelease(w http.ResponseWriter, r *http.Request, c *call) (releaseBody, router.Claim, error) {
	d := s.desks.take()
	defer s.desks.back(d)
	raw, err := s.readBody(w, r, c, s.limits.BodyBytes, d)
	if err != nil {
		return releaseBody{}, router.Claim{}, err
	}
	body := &d.release
	*body = releaseBody{Request: router.Request{ID: router.RequestID(c.id), Executions: 1}}
	if err := s.forms.release.decode(&d.reader, raw, body); err != nil {
		return releaseBody{}, router.Claim{}, err
	}
	if err := body.validate(c.id); err != nil {
		return releaseBody{}, router.Claim{}, err
	}
	if len(body.Token) == 0 {
		return *body, router.Claim{}, s.checkForgo(r, c, &body.Request)
	}
	claim, err := s.holder(r, c, body.Token)
	return *body, claim, err
}

func (b *releaseBody) validate(id string) error {
	switch {
	case string(b.Request.ID) != id:
		return invalid("requestID", "requestID differs from the one in the path")
	case !router.ValidOutcome(b.Outcome):
		return invalid("outcome", "outcome must be Succeeded, Aborted, NotSent, Rejected, Cancelled or Ambiguous")
	case len(b.Token) == 0 && b.Outcome != router.NotSent:
		return invalid("token", "token is required for every outcome but NotSent")
	}
	return nil
}

func (s *Server) checkForgo(r *http.Request, c *call, req *router.Request) error {
	if err := req.Validate(); err != nil {
		return err
	}
	return s.authorize(r, c.pool, req.Sender)
}

// released tells of a release.
func (s *Server) released(step *steps.Step, body *releaseBody, e *router.Ending, claim *router.Claim, err error) {
	if step == nil {
		return
	}
	step.Outcome, step.Fate = body.Outcome, e.Fate
	s.end(step, claim, err)
}

// finish releases by token. Without one it ends a request whose client gave up waiting: it
// "releases NotSent, without a token, with the identity" (design 5.2).
func (s *Server) finish(w http.ResponseWriter, r *http.Request, c *call, body *releaseBody, claim router.Claim, step *steps.Step) (router.Ending, error) {
	if claim.Request == "" {
		return c.table.Forgo(body.Request, s.clock())
	}
	e, err := c.table.Release(claim, body.Outcome, body.Reply, s.clock())
	if err != nil || e.Settled {
		return e, err
	}
	step.Waits(s.clock())
	return s.awaitFate(w, r, c, claim)
}
