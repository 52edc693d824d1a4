package access

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Filter lets those read a path who may get it, as a path that is no resource: for metrics. It is a
// filter of controller-runtime's metrics server.
func (g *Gate) Filter(_ logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client may hang after its call as well as before it.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
		_, err := g.may(r, Deed{Verb: "get", Path: r.URL.Path})
		refusal, refused := errors.AsType[*router.Refusal](err)
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only to be read", http.StatusMethodNotAllowed)
		case !refused:
			next.ServeHTTP(w, r)
		case refusal.Reason == ReasonUnauthenticated:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, refusal.Detail, http.StatusUnauthorized)
		case refusal.Reason == ReasonUnavailable:
			http.Error(w, refusal.Detail, http.StatusServiceUnavailable)
		default:
			http.Error(w, refusal.Detail, http.StatusForbidden)
		}
	}), nil
}
