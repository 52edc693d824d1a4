package server

import (
	"net/http"
	"time"
)

// UnreadTime is how long the client may take for the rest of a body that nobody reads, where no Limits say.
const UnreadTime = time.Second

// Hurry bounds the time for a body that nobody reads. net/http reads on in the body of a call that was
// answered without it, the connection counts as one with a call on it all the while, and such a one is cut for
// nobody: a stranger would keep its place by a byte that does not come. So it comes first, before anything is asked about the
// call. Whoever reads the body sets a deadline of its own before.
func Hurry(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return // net/http listens for the client's hanging up only, for which it would take the deadline
	}
	// It cannot fail but where there is no connection, as in a test's recorder.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
}

// Hurried is a handler that reads no bodies.
func Hurried(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Hurry(w, r, UnreadTime)
		next.ServeHTTP(w, r)
	})
}
