package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// problemTypes is what the type of a problem begins with; its reason follows.
const problemTypes = "urn:berthmaster:problem:"

// problem is an RFC 9457 problem document with the members of the lease protocol.
type problem struct {
	Type   string        `json:"type"`
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail,omitempty"`
	Reason router.Reason `json:"reason"`
	// Field names the part of the request at fault.
	Field string `json:"field,omitempty"`
	// Outcome and Fate say how a lease ended.
	Outcome router.Outcome `json:"outcome,omitempty"`
	Fate    router.Fate    `json:"fate,omitempty"`
	// Epoch is the pool's, with StaleEpoch.
	Epoch router.Epoch `json:"epoch,omitempty"`
	// RetryAfterSeconds is the Retry-After header, here for the entries of a batch.
	RetryAfterSeconds int64 `json:"retryAfterSeconds,omitempty"`
}

// problemOf describes err, which is a refusal unless there is a fault in this program.
func (s *Server) problemOf(err error) problem {
	var r *router.Refusal
	if !errors.As(err, &r) {
		var within *failedCall
		errors.As(err, &within)
		s.log.Error("lease API: a call failed for no documented reason", append(within.facts(), "error", err)...)
		return problem{
			Type: "about:blank", Title: http.StatusText(http.StatusInternalServerError),
			Status: http.StatusInternalServerError, Reason: "Internal",
		}
	}
	m := s.meanings[r.Reason]
	return problem{
		Type: problemTypes + string(r.Reason), Title: m.title, Status: m.status, Detail: r.Detail, Reason: r.Reason,
		Field: r.Field, Outcome: r.Outcome, Fate: r.Fate, Epoch: r.Epoch, RetryAfterSeconds: wholeSeconds(r.RetryAfter),
	}
}

// failedCall is an error of a call whose log line is to say which call it was.
type failedCall struct {
	error
	pool router.PoolKey
	id   string
}

// Unwrap is the error without the call.
func (e *failedCall) Unwrap() error { return e.error }

// facts are the pool and, where the path names one, the id of a request or a session.
func (e *failedCall) facts() []any {
	switch {
	case e == nil || e.pool.Name == "":
		return nil
	case e.id == "":
		return []any{"pool", e.pool.Namespace + "/" + e.pool.Name}
	default:
		return []any{"pool", e.pool.Namespace + "/" + e.pool.Name, "id", e.id}
	}
}

// failed is err as an error of the call, unless it is a refusal, which is logged by nobody.
func (c *call) failed(err error) error {
	if _, ok := errors.AsType[*router.Refusal](err); ok || err == nil {
		return err
	}
	return &failedCall{err, c.pool, c.id}
}

// refuse answers with the problem document of err.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	p := s.problemOf(err)
	h := w.Header()
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfterSeconds, 10))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.Reason == router.ReasonNoLeader || p.Reason == ReasonNotLeader {
		// This replica may be the one that is cut off: the next try comes on a new connection, which
		// whatever stands before the replicas deals out anew.
		h.Set("Connection", "close")
	}
	s.write(w, p.Status, "application/problem+json", p)
}

// answer writes body as JSON. A long one takes of the room that is shared until the client has taken it.
func (s *Server) answer(w http.ResponseWriter, pool router.PoolKey, body any) {
	raw, ok := s.encode(w, body)
	if !ok {
		return
	}
	if n := int64(len(raw)); n > deskBytes {
		if err := s.large.take(pool, n); err != nil {
			s.refuse(w, err)
			return
		}
		defer s.large.back(pool, n)
	}
	send(w, http.StatusOK, "application/json", raw)
}

// write writes body as JSON of that kind.
func (s *Server) write(w http.ResponseWriter, status int, kind string, body any) {
	if raw, ok := s.encode(w, body); ok {
		send(w, status, kind, raw)
	}
}

// encode is body as JSON. If it is none that has been answered.
func (s *Server) encode(w http.ResponseWriter, body any) ([]byte, bool) {
	raw, err := json.Marshal(body)
	if err != nil { // the bodies are plain structs: only a fault in this program gets here
		s.log.Error("lease API: an answer cannot be encoded", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
	}
	return raw, err == nil
}

func send(w http.ResponseWriter, status int, kind string, raw []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that has gone does not read its answer
}

// wholeSeconds rounds up: coming back too early helps nobody.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// invalid refuses a request whose named field is at fault.
func invalid(field, detail string) *router.Refusal {
	return &router.Refusal{Reason: router.ReasonInvalid, Field: field, Detail: detail}
}

func poolNotFound() *router.Refusal {
	return &router.Refusal{Reason: router.ReasonPoolNotFound, Detail: "no inferencepools.inference.berthmaster.io of this name is served here"}
}
