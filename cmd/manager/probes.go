package main

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// probes answers the kubelet: /healthz while the process runs, /readyz once leases are served. It tells
// nothing else, and so nobody is asked who they are.
func probes(ready healthz.Checker) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]map[string]healthz.Checker{"/healthz": {"running": healthz.Ping}, "/readyz": {"leases": ready}} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: check})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return mux
}
