package server

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// pace is how long a client may be silent in the middle of a call that the leader answers: this replica
// cannot tell whether it waits, and so lifts the limits for whole calls. Without a pace somebody who sends the
// beginning of a body, or reads none of the answer, would keep its connection for ever.
type pace struct {
	sending, reading time.Duration
	// unread is for the rest of a body that nobody reads.
	unread time.Duration
}

// pace is that of the lease API.
func (s *Server) pace() pace { return pace{s.limits.Read, s.limits.Write, s.limits.Unread} }

// The pace of the data path, whose bodies are long and whose engines may be silent for hours.
const (
	dataSending = 5 * time.Minute
	dataReading = 2 * time.Hour
)

// follow has a call go at a pace; r's body is then the one returned, or, if that is nil, there is none.
// settle, to be called once it is answered, leaves what net/http still does with the connection a short time.
func (p pace) follow(w http.ResponseWriter, r *http.Request) (paced http.ResponseWriter, body *pacedBody, settle func()) {
	rc := http.NewResponseController(w)
	// Deadlines cannot fail but where there is no connection, as in a test's recorder.
	_ = rc.SetWriteDeadline(time.Time{})
	_ = rc.SetReadDeadline(time.Time{})
	if r.Body != nil && r.Body != http.NoBody {
		body = &pacedBody{ReadCloser: r.Body, rc: rc, patience: p.sending}
		r.Body = body
	}
	return &pacedWriter{ResponseWriter: w, rc: rc, patience: p.reading}, body, func() {
		_ = rc.SetWriteDeadline(time.Now().Add(p.reading))
		if body != nil {
			_ = rc.SetReadDeadline(time.Now().Add(p.unread)) // of what is left, if anything is
		}
	}
}

// pacedBody gives each piece its time. Once all of it is in, only the client's hanging up ends the wait.
type pacedBody struct {
	io.ReadCloser
	rc       *http.ResponseController
	patience time.Duration
	broke    atomic.Bool
}

// torn says whether the body ended before it was whole: its client hung up, or was silent for too long.
func (b *pacedBody) torn() bool { return b != nil && b.broke.Load() }

// Read reads the next piece.
func (b *pacedBody) Read(p []byte) (int, error) {
	_ = b.rc.SetReadDeadline(time.Now().Add(b.patience))
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.rc.SetReadDeadline(time.Time{})
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose): // whoever closed it has its own reason
		b.broke.Store(true)
	}
	return n, err
}

// pacedWriter gives the client time to take each piece.
type pacedWriter struct {
	http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
}

// Write writes a piece, and whoever flushes it does so in the same time.
func (w *pacedWriter) Write(p []byte) (int, error) {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(p)
}

// Unwrap is what http.NewResponseController looks for.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
