package server

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// batchAnswer has one result per request, in their order.
type batchAnswer struct {
	Results []batchResult `json:"results"`
}

// batchResult is what POST leases would have answered to one request: a lease or a problem.
type batchResult struct {
	Status  int             `json:"status"`
	Lease   json.RawMessage `json:"lease,omitempty"`
	Problem *problem        `json:"problem,omitempty"`
}

// batch is POST leases:batch: "many acquires, each with its own result; never waits, not
// atomic" (design section 6).
func (s *Server) batch(w http.ResponseWriter, r *http.Request, c *call) {
	raw, err := s.readBody(w, r, s.limits.BatchBytes, nil)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	body, err := decodeBatch(raw)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	if n := len(body.Requests); n < 1 || n > s.limits.BatchRequests {
		s.refuse(w, invalid("requests", "requests must have 1 to "+strconv.Itoa(s.limits.BatchRequests)+" entries"))
		return
	}
	out := batchAnswer{Results: make([]batchResult, 0, len(body.Requests))}
	for _, one := range body.Requests {
		out.Results = append(out.Results, s.batchOne(r, c, one))
	}
	s.answer(w, http.StatusOK, out)
}

func (s *Server) batchOne(r *http.Request, c *call, raw []byte) batchResult {
	step := s.begin(steps.Acquire, r, c)
	g, err := s.grantOne(r, c, raw, step)
	s.end(step, &g.Claim, err)
	if err != nil {
		p := s.problemOf(c.failed(err))
		return batchResult{Status: p.Status, Problem: &p}
	}
	return batchResult{Status: grantStatus(&g), Lease: appendLease(nil, &g, s.tokens.Load())}
}

func (s *Server) grantOne(r *http.Request, c *call, raw []byte, step *steps.Step) (router.Grant, error) {
	var body acquireBody
	if err := s.forms.decodeAcquire(&jsonReader{}, raw, &body); err != nil {
		return router.Grant{}, err
	}
	if body.WaitSeconds != 0 {
		return router.Grant{}, invalid("waitSeconds", "a batch never waits")
	}
	req, err := s.requestOf(r, c, &body)
	step.Asks(&req)
	if err != nil {
		return router.Grant{}, err
	}
	return s.grantNow(r, c, &req)
}
