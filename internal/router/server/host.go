package server

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Addressed reports whether a call may be answered at all: where nobody is asked who they are, only one that is
// addressed to this machine is. If not, it has been refused. Whatever is served beside the lease API asks it first.
//
// A page may be of a name that is made to mean 127.0.0.1 once it is loaded. To the browser what is served here is then
// of the page's own origin, and it may call and read everything. Only the name that the call is addressed to tells.
func (s *Server) Addressed(w http.ResponseWriter, r *http.Request) bool {
	if s.authorizer != nil || ToThisMachine(r.Host, s.hosts) {
		return true
	}
	Hurry(w, r, s.limits.Unread)
	s.refuse(w, &router.Refusal{Reason: ReasonForbidden,
		Detail: "callers are not authenticated here, so only calls to localhost or a loopback address are answered, and none to another name"})
	return false
}

// addressed serves what is addressed to this machine.
func (s *Server) addressed(w http.ResponseWriter, r *http.Request) {
	if s.Addressed(w, r) {
		s.ServeHTTP(w, r)
	}
}

// ToThisMachine reports whether a Host header, with a port or without, names this machine: as localhost, by a
// loopback address, or by one of those names. No name is resolved.
func ToThisMachine(header string, names []string) bool {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return loopback(host) || slices.ContainsFunc(names, func(name string) bool { return name != "" && strings.EqualFold(name, host) })
}
