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

// batchAnswerBytes is about what one result takes: by itself, and in the answer.
const batchAnswerBytes = 2 << 10

// batch is POST leases:batch: "many acquires, each with its own result; never waits, not
// atomic" (design section 6).
func (s *Server) batch(w http.ResponseWriter, r *http.Request, c *call) {
	d := s.desks.take()
	defer s.desks.back(d)
	requests, err := s.readBatch(w, r, c, d)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	out := batchAnswer{Results: make([]batchResult, 0, len(requests))}
	for _, one := range requests {
		out.Results = append(out.Results, s.batchOne(r, c, one))
	}
	s.write(w, http.StatusOK, "application/json", out)
}

// readBatch reads the requests of a batch, which are parts of its body, and has the desk hold the memory for
// the answer: before anything is granted that could not be told.
func (s *Server) readBatch(w http.ResponseWriter, r *http.Request, c *call, d *desk) ([]json.RawMessage, error) {
	raw, err := s.readBody(w, r, c, s.limits.BatchBytes, d)
	if err != nil {
		return nil, err
	}
	requests, err := decodeBatch(&d.reader, raw, s.limits.BatchRequests)
	if err != nil {
		return nil, err
	}
	return requests, s.desks.hold(d, c.pool, int64(len(requests))*batchAnswerBytes)
}

// batchBody is many acquires. Each is decoded by itself, so that one that is ill-formed spoils
// no other.
type batchBody struct{ requests []json.RawMessage }

// decodeBatch takes a batch of up to most requests apart; r is lent to it.
func decodeBatch(r *jsonReader, raw []byte, most int) ([]json.RawMessage, error) {
	var body batchBody
	err := form[batchBody]{{"requests", func(b *batchBody, r *jsonReader) { b.requests = r.elements(most) }}}.decode(r, raw, &body)
	if err == nil && len(body.requests) == 0 {
		err = tooFewOrMany(most)
	}
	return body.requests, err
}

func tooFewOrMany(most int) *router.Refusal {
	return invalid("requests", "requests must have 1 to "+strconv.Itoa(most)+" entries")
}

// elements reads a list without looking into its elements, which are parts of raw. With the first beyond most it ends, so that
// no more is made of a body than of one that is good.
func (r *jsonReader) elements(most int) []json.RawMessage {
	if r.peek() != '[' {
		r.wrong("a list")
		return nil
	}
	var out []json.RawMessage
	for first := true; r.more('[', ']', first); first = false {
		if len(out) == most {
			r.err = tooFewOrMany(most)
			return nil
		}
		begin := r.at
		r.pass()
		one := r.raw[begin:r.at]
		if !json.Valid(one) {
			r.broken()
			return nil
		}
		out = append(out, one)
		r.space()
	}
	return out
}

// pass goes behind a value that is JSON; behind what, if it is none, is of no matter.
func (r *jsonReader) pass() {
	depth := 0
	for r.at < len(r.raw) {
		switch r.raw[r.at] {
		case '"':
			r.passText()
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			if depth == 0 {
				return // of what is around
			}
			depth--
			r.at++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return
			}
			r.at++
		default:
			r.at++
		}
	}
}

// passText goes behind a string.
func (r *jsonReader) passText() {
	r.at++
	for r.at < len(r.raw) && r.raw[r.at] != '"' {
		if r.raw[r.at] == '\\' {
			r.at++
		}
		r.at++
	}
	r.at = min(r.at+1, len(r.raw))
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
