package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// call is a request whose path is understood and whose pool is known.
type call struct {
	pool  router.PoolKey
	table *router.Table
	// id is the request or session that the path names; empty: none.
	id string
	// reign is done once the call is for another replica to answer; nil: it lasts.
	reign context.Context
	// pace is the client's, if the leader answers.
	pace pace
}

// handler serves one kind of call.
type handler func(w http.ResponseWriter, r *http.Request, c *call)

// route is what a path below a pool means.
type route struct {
	// methods has one handler per method; nil: no call has this path.
	methods map[string]handler
	// idField is how the protocol names the id in the path; empty: there is none.
	idField string
}

// routes are the calls of design section 6 by what follows the pool's name; * stands for an id.
func (s *Server) routes() map[string]route {
	return map[string]route{
		"":                 {map[string]handler{http.MethodGet: s.live}, ""},
		"leases":           {map[string]handler{http.MethodPost: s.acquire}, ""},
		"leases:batch":     {map[string]handler{http.MethodPost: s.batch}, ""},
		"watch":            {map[string]handler{http.MethodGet: s.watch}, ""},
		"recent":           {map[string]handler{http.MethodGet: s.recent}, ""},
		"sessions":         {map[string]handler{http.MethodGet: s.listSessions}, ""},
		"leases/*/renew":   {map[string]handler{http.MethodPost: s.renew}, "requestID"},
		"leases/*/release": {map[string]handler{http.MethodPost: s.release}, "requestID"},
		"sessions/*":       {map[string]handler{http.MethodGet: s.session, http.MethodDelete: s.endSession}, "sessionID"},
	}
}

// pathPrefix begins every path of the protocol.
const pathPrefix = "/v1alpha1/namespaces/"

// split takes /v1alpha1/namespaces/{ns}/inferencepools/{name}/{rest} apart; false: the path has
// another form.
func split(path string) (pool router.PoolKey, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, pathPrefix)
	if !ok {
		return pool, "", false
	}
	pool.Namespace, path, ok = strings.Cut(path, "/")
	if !ok || pool.Namespace == "" {
		return pool, "", false
	}
	path, ok = strings.CutPrefix(path, "inferencepools/")
	if !ok {
		return pool, "", false
	}
	name, rest, deeper := strings.Cut(path, "/")
	pool.Name = name
	return pool, rest, name != "" && (!deeper || rest != "")
}

// shape replaces the id in what follows the pool's name by *, and returns it.
func shape(rest string) (form, id string) {
	collection, below, ok := strings.Cut(rest, "/")
	if !ok {
		return rest, ""
	}
	id, verb, ok := strings.Cut(below, "/")
	switch {
	case collection == "leases" && ok && verb == "renew":
		return "leases/*/renew", id
	case collection == "leases" && ok && verb == "release":
		return "leases/*/release", id
	case collection == "sessions" && !ok:
		return "sessions/*", id
	}
	return rest, ""
}

// ServeHTTP serves the lease protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Hurry(w, r, s.limits.Unread)
	if err := s.crossOrigin.Check(r); err != nil {
		s.refuse(w, &router.Refusal{Reason: ReasonForbidden, Detail: "a page of another origin may not use this API"})
		return
	}
	if r.URL.Path == listPath {
		s.list(w, r)
		return
	}
	pool, rest, ok := split(r.URL.Path)
	if !ok {
		s.refuse(w, &router.Refusal{Reason: ReasonNotFound, Detail: "calls are below " + pathPrefix + "{namespace}/inferencepools/{name}"})
		return
	}
	form, id := shape(rest)
	v, ok := s.byPath[form]
	if !ok {
		s.refuse(w, &router.Refusal{Reason: ReasonNotFound, Detail: "a pool has no call of this path"})
		return
	}
	h := v.methods[r.Method]
	switch {
	case h == nil:
		s.refuseMethod(w, v)
	case v.idField != "" && !router.ValidID(id):
		s.refuse(w, invalid(v.idField, v.idField+" must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}"))
	default:
		s.serve(w, r, h, &call{pool: pool, id: id, pace: s.pace()})
	}
}

// serve finds the pool and makes the call, or has the leader make it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, h handler, c *call) {
	// Before the pool is looked for, so that strangers do not learn which there are; before a body is read; and
	// before the leader is bothered, which judges by itself. What names a sender asks once more for it.
	if !s.lets(w, r, c.pool) || !s.answersHere(w, r, c) {
		return
	}
	table, ok := s.pools.Get(c.pool)
	switch {
	case ok:
	case c.reign != nil && c.reign.Err() != nil:
		s.refuse(w, noLeader("this replica does not lead any more")) // what it lacks need not be missing
		return
	default:
		s.refuse(w, poolNotFound())
		return
	}
	c.table = table
	h(w, r, c)
}

// lets reports whether the caller may call at all. If not it has been told.
func (s *Server) lets(w http.ResponseWriter, r *http.Request, pool router.PoolKey) bool {
	err := s.authorize(r, pool, "")
	if err == nil {
		s.beginAnew(w)
		return true
	}
	Hurry(w, r, s.limits.Unread) // anew: an answer about the caller may have taken its time
	s.refuse(w, err)
	return false
}

// beginAnew gives a caller that is known now the time for the answer from here on, as readBody does for the
// body: an API server that answers late, or not at all, must not make a malformed request of a good one.
func (s *Server) beginAnew(w http.ResponseWriter) {
	if s.authorizer == nil {
		return
	}
	// It cannot fail but where there is no connection, as in a test's recorder.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.Write))
}

func (s *Server) refuseMethod(w http.ResponseWriter, v route) {
	w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(v.methods)), ", "))
	s.refuse(w, &router.Refusal{Reason: ReasonMethodNotAllowed, Detail: "see the Allow header"})
}
