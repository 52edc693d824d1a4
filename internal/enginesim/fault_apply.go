package enginesim

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"
)

// armLocked puts a fault in force.
func (s *Server) armLocked(f Fault) {
	f = f.withDefaults()
	switch f.Kind {
	case FaultExit:
		if f.After == 0 {
			s.dieLocked(f.Code)
			return
		}
	case FaultSchedulerDead:
		s.haltLocked(haltHung)
	case FaultSchedulerHung:
		s.haltLocked(haltHung)
		s.goLocked(func() { s.watch(&f) })
	case FaultFreezeLoads:
		s.st.faults.frozen = s.time.seconds()
	case FaultRefuse:
		s.st.refuse(time.Duration(f.Millis) * time.Millisecond)
		return // the socket counts it down
	case FaultReset, FaultHang, FaultSlow, FaultStatus, FaultHealth, FaultUpdateFails, FaultWrongVersion:
	}
	s.st.faults.armed = append(s.st.faults.armed, &f)
	s.changedLocked()
}

// watch kills a server whose scheduler is still hung, by the same fault, when the watchdog's time is over.
func (s *Server) watch(hung *Fault) {
	if s.cfg.Watchdog < 0 || s.time.pause(s.alive, s.cfg.Watchdog) != nil {
		return
	}
	s.change(func(st *state) {
		if slices.Contains(st.faults.armed, hung) {
			s.dieLocked(exitCrash)
		}
	})
}

// disarmLocked clears every fault; what hangs because of one goes on.
func (s *Server) disarmLocked() {
	s.st.faults = faults{}
	s.resumeLocked(haltHung)
	s.changedLocked()
}

// countdownLocked notes that a generation request has begun.
func (s *Server) countdownLocked() {
	for _, f := range s.st.faults.armed {
		if f.Kind != FaultExit {
			continue
		}
		if f.After--; f.After == 0 {
			s.dieLocked(f.Code)
		}
	}
}

func (s *Server) strike(kind FaultKind, path string) (f *Fault) {
	s.change(func(st *state) { f = st.faults.take(kind, path) })
	return f
}

// withFaults answers a request through the faults that concern it.
func (s *Server) withFaults(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter)) {
	path := r.URL.Path
	if f := s.strike(FaultSlow, path); f != nil {
		if wait(r.Context(), s, time.Duration(f.Millis)*time.Millisecond) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if s.strike(FaultHang, path) != nil {
		s.hang(w, r)
	}
	if f := s.strike(FaultStatus, path); f != nil {
		if f.When == After {
			next(&discard{header: http.Header{}})
		}
		writeError(w, httpError(f.Status, "simulated fault"))
		return
	}
	if f := s.strike(FaultReset, path); f != nil {
		w = &cutWriter{ResponseWriter: w, left: f.Bytes, request: r}
	}
	next(w)
	if c, ok := w.(*cutWriter); ok && c.left <= 0 {
		c.cut()
	}
}

func wait(ctx context.Context, s *Server, d time.Duration) error {
	t := s.cfg.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hang reads a request, so that the client's going can be noticed, and never answers it.
func (s *Server) hang(w http.ResponseWriter, r *http.Request) {
	if _, err := readBody(w, r); err == nil {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

// discard is a reply that nobody sees.
type discard struct{ header http.Header }

// Header returns headers that go nowhere.
func (d *discard) Header() http.Header { return d.header }

// Write drops the bytes.
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader drops the status.
func (d *discard) WriteHeader(int) {}

// cutWriter resets the connection once so many bytes of the body are out.
type cutWriter struct {
	http.ResponseWriter

	left    int64
	request *http.Request
}

// Write passes bytes on as far as they may go.
func (c *cutWriter) Write(p []byte) (int, error) {
	n := min(int64(len(p)), c.left)
	if n > 0 {
		if _, err := c.ResponseWriter.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	if c.left -= n; c.left <= 0 {
		c.cut()
	}
	return len(p), nil
}

// Unwrap lets a ResponseController reach the connection.
func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// cut sends what is buffered and ends the connection, with a reset where the server has its own socket.
func (c *cutWriter) cut() {
	_ = http.NewResponseController(c.ResponseWriter).Flush() // a recorder in a test may not flush
	if conn, ok := c.request.Context().Value(connKey{}).(*net.TCPConn); ok {
		_ = conn.SetLinger(0) // the connection may be gone, which is as good
	}
	panic(http.ErrAbortHandler)
}

// connKey is where a request's context holds its connection.
type connKey struct{}
