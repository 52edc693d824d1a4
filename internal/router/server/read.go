package server

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// readBody reads the body, up to limit bytes, onto the desk, or, if it is too long for that, into memory that
// the desk holds. The time for it begins now.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, c *call, limit int64, d *desk) ([]byte, error) {
	if r.Body != http.NoBody {
		// It cannot fail but where there is no connection, as in a test's recorder.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.limits.Read))
	}
	if n := r.ContentLength; n >= 0 && n <= min(limit, deskBytes) {
		if _, err := io.ReadFull(r.Body, d.room[:n]); err != nil {
			return nil, unreadable()
		}
		return d.room[:n], nil
	}
	if r.ContentLength > limit {
		Hurry(w, r, s.limits.Unread)
		return nil, tooLong(limit)
	}
	raw, err := s.fillFrom(http.MaxBytesReader(w, r.Body, limit), c, cmp.Or(max(r.ContentLength, 0), limit), d)
	if refused, ok := errors.AsType[*router.Refusal](err); ok {
		Hurry(w, r, s.limits.Unread)
		return nil, refused
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLong(limit)
	}
	if !errors.Is(err, io.EOF) {
		return nil, unreadable()
	}
	return raw, nil
}

// fillFrom reads a body of up to size bytes onto the desk and, from where that is full, into memory that the desk
// holds. It ends with io.EOF.
func (s *Server) fillFrom(body io.Reader, c *call, size int64, d *desk) ([]byte, error) {
	n, err := fill(body, d.room[:])
	if err != nil {
		return d.room[:n], err
	}
	if err := s.desks.hold(d, c.pool, size); err != nil {
		return nil, err
	}
	raw := make([]byte, size+1) // one more, since a reader may tell the end only after the last byte
	n = copy(raw, d.room[:])
	m, err := fill(body, raw[n:])
	return raw[:n+m], err
}

// fill reads until buf is full, or until an error, which io.EOF is, too.
func fill(from io.Reader, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := from.Read(buf[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func tooLong(limit int64) error {
	return invalid("body", "the body is longer than "+strconv.FormatInt(limit, 10)+" bytes")
}

func unreadable() error { return invalid("body", "the body could not be read whole") }
