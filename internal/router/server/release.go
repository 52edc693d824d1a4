package server

import (
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
)

// releaseAnswer answers release.
type releaseAnswer struct {
	RequestID string         `json:"requestID"`
	Outcome   router.Outcome `json:"outcome"`
	// Fate is empty when the outcome says all.
	Fate  router.Fate `json:"fate"`
	Mixed bool        `json:"mixed"`
}

// release is POST leases/{requestID}/release.
func (s *Server) release(w http.ResponseWriter, r *http.Request, c *call) {
	raw, err := readBody(w, r, s.limits.BodyBytes)
	if err != nil {
		s.refuse(w, err)
		return
	}
	body := releaseBody{Executions: 1, RequestID: router.RequestID(c.id)}
	if err := decodeBody(raw, &body); err != nil {
		s.refuse(w, err)
		return
	}
	e, err := s.end(w, r, c, &body)
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, http.StatusOK, releaseAnswer{RequestID: c.id, Outcome: e.Outcome, Fate: e.Fate, Mixed: e.Mixed})
}

// end releases by token, or forgoes by identity.
func (s *Server) end(w http.ResponseWriter, r *http.Request, c *call, body *releaseBody) (router.Ending, error) {
	if err := body.validate(c.id); err != nil {
		return router.Ending{}, err
	}
	if body.Token == "" {
		return s.forgo(r, c, body)
	}
	claim, err := s.holder(r, c, body.Token)
	if err != nil {
		return router.Ending{}, err
	}
	reply := router.Reply{Version: body.WeightVersion, PromptTokens: body.PromptTokens, OutputTokens: body.OutputTokens}
	e, err := c.table.Release(claim, body.Outcome, reply, s.clock())
	if err != nil || e.Settled {
		return e, err
	}
	return s.awaitFate(w, r, c, claim)
}

func (b *releaseBody) validate(id string) error {
	switch {
	case string(b.RequestID) != id:
		return invalid("requestID", "requestID differs from the one in the path")
	case !router.ValidOutcome(b.Outcome):
		return invalid("outcome", "outcome must be Succeeded, Aborted, NotSent, Rejected, Cancelled or Ambiguous")
	case b.Token == "" && b.Outcome != router.NotSent:
		return invalid("token", "token is required for every outcome but NotSent")
	}
	return nil
}

// forgo ends a request whose client gave up waiting: "releases NotSent, without a token, with
// the identity" (design 5.2).
func (s *Server) forgo(r *http.Request, c *call, body *releaseBody) (router.Ending, error) {
	req := router.Request{
		ID: body.RequestID, Session: body.SessionID, Sender: body.Sender, SenderGeneration: body.SenderGeneration,
		Epoch: body.Epoch, Group: body.GroupID, Executions: body.Executions,
	}
	if err := req.Validate(); err != nil {
		return router.Ending{}, err
	}
	if err := s.authorize(r, c.pool, req.Sender); err != nil {
		return router.Ending{}, err
	}
	return c.table.Forgo(req, s.clock())
}
