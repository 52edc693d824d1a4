package access

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Guard lets those read a path who may get it, as a path that is no resource: for metrics. No other path is
// served, or asked about.
func (g *Gate) Guard(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client may hang after its call as well as before it.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
		err := g.reads(r, path)
		refusal, refused := errors.AsType[*router.Refusal](err)
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only to be read", http.StatusMethodNotAllowed)
		case refused:
			refuse(w, refusal)
		case r.URL.Path != path:
			http.NotFound(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// reads refuses whoever may not get the path; for a call of another one, which is none, it is enough to be known.
func (g *Gate) reads(r *http.Request, path string) error {
	if r.URL.Path != path {
		return g.Authenticate(r)
	}
	return g.may(r, Deed{Verb: "get", Path: path})
}

func refuse(w http.ResponseWriter, refusal *router.Refusal) {
	switch refusal.Reason {
	case ReasonUnauthenticated:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, refusal.Detail, http.StatusUnauthorized)
	case ReasonUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(int(refusal.RetryAfter/time.Second)))
		http.Error(w, refusal.Detail, http.StatusServiceUnavailable)
	default:
		http.Error(w, refusal.Detail, http.StatusForbidden)
	}
}
