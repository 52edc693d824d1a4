package main

import (
	"net"
	"net/http"
	"strings"

	"github.com/berthmaster/berthmaster/internal/router/server"
)

// hosts are the names and addresses, besides those of loopback, that this replica may be called by where nobody
// is asked who they are: those that somebody said.
func (o *options) hosts() []string {
	var hosts []string
	if o.security.names != "" {
		hosts = strings.Split(o.security.names, ",")
	}
	if host, _, err := net.SplitHostPort(o.election.advertise); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

// toHosts serves what is addressed to this machine. To a browser, a page of a name that is made to mean 127.0.0.1
// is of the same origin as what is served here.
func toHosts(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !server.ToThisMachine(r.Host, hosts) {
			http.Error(w, "callers are not authenticated here, so only calls to localhost or a loopback address are answered", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
