package fakepool

import (
	"fmt"
	"net/http"
	"slices"
)

func refusal(status int, reason, detail string) (int, map[string]any) {
	return status, map[string]any{"status": status, "reason": reason, "title": reason, "detail": detail}
}

// note keeps the first body of a kind.
func (r *record) note(kind string, members map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first[kind] == nil {
		r.first[kind] = members
	}
}

// grant answers an acquire as a router in order does: the same id gets the same lease, and an id
// that has ended gets none.
func (r *record) grant(next func(requestID string) (*lease, error), c acquireCall) (int, map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, known := r.asked[c.RequestID]; known && before != c.normal() {
		r.faults = append(r.faults, fmt.Sprintf("C2: %s was asked for as %s and then as %s", c.RequestID, before, c.normal()))
		return refusal(http.StatusConflict, "RequestConflict", "another identity")
	}
	r.asked[c.RequestID] = c.normal()
	if l := r.byID(c.RequestID); l != nil {
		if len(l.outcomes) > 0 {
			r.faults = append(r.faults, "C1: "+c.RequestID+" was asked for again after its end")
			status, body := refusal(http.StatusConflict, "LeaseEnded", "it has ended")
			body["outcome"] = l.outcomes[0]
			return status, body
		}
		return http.StatusOK, l.answer
	}
	l, err := next(c.RequestID)
	if err != nil {
		return refusal(http.StatusServiceUnavailable, "NoBackend", err.Error())
	}
	l.identity = c.normal()
	r.leases = append(r.leases, l)
	return http.StatusCreated, l.answer
}

// holder finds the lease that a call is about, and checks its token. The caller holds mu.
func (r *record) holder(requestID, token string) *lease {
	l := r.byID(requestID)
	if l == nil || l.token != token {
		r.faults = append(r.faults, fmt.Sprintf("C7: a call for %s carried token %q", requestID, token))
		return nil
	}
	return l
}

func (r *record) renewal(requestID string, c renewCall) (int, map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.holder(requestID, c.Token)
	if l == nil {
		return refusal(http.StatusForbidden, "TokenInvalid", "not the lease's")
	}
	if len(l.outcomes) > 0 {
		status, body := refusal(http.StatusConflict, "LeaseEnded", "it has ended")
		body["outcome"] = l.outcomes[0]
		return status, body
	}
	return http.StatusOK, map[string]any{
		"requestID": requestID, "ttlSeconds": l.answer["ttlSeconds"], "startSeconds": l.answer["startSeconds"], "mixed": false,
		"state": map[string]any{
			"epoch": l.answer["epoch"], "term": l.answer["term"], "publishedVersion": "v7", "leasing": "Open", "access": "Open",
			"failed": false,
		},
	}
}

func (r *record) ending(requestID string, c releaseCall) (int, map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.holder(requestID, c.Token)
	if l == nil {
		return refusal(http.StatusForbidden, "TokenInvalid", "not the lease's")
	}
	if !slices.Contains([]string{"Succeeded", "Aborted", "NotSent", "Rejected", "Cancelled", "Ambiguous"}, c.Outcome) {
		r.faults = append(r.faults, fmt.Sprintf("C28: %q is no outcome", c.Outcome))
	}
	l.outcomes = append(l.outcomes, c.Outcome)
	fate := map[string]string{"Ambiguous": "Dead", "Cancelled": "Pending"}[c.Outcome]
	return http.StatusOK, map[string]any{"requestID": requestID, "outcome": c.Outcome, "fate": fate, "mixed": false}
}

// forgo is a release without a token: it must say NotSent, with the identity that was asked for.
func (r *record) forgo(requestID string, c releaseCall) (int, map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked := r.asked[requestID]; c.Outcome != "NotSent" || asked != c.normal() {
		r.faults = append(r.faults, fmt.Sprintf("C4: %s was given up as %s with %s, asked for with %s", requestID, c.Outcome, c.normal(), asked))
	}
	if l := r.byID(requestID); l != nil {
		l.outcomes = append(l.outcomes, c.Outcome)
	}
	return http.StatusOK, map[string]any{"requestID": requestID, "outcome": c.Outcome, "fate": "", "mixed": false}
}
