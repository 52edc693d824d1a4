package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// together is up to what size, in bytes, a body is written in one go with its headers.
const together = 32 << 10

// buffers are for heads and for pieces of bodies. They hold no more than they were made for, so
// that one large head does not stay.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, 0, together+4<<10)
	return &p
}

func (b *buffers) put(p *[]byte) {
	if cap(*p) <= 2*together {
		*p = (*p)[:0]
		b.pool.Put(p)
	}
}

// writeHead writes the headers, and a small body with them; a large one is returned.
func (x *exchange) writeHead(r *Request, host string) (*io.LimitedReader, error) {
	buffer := x.client.buffers.get()
	defer x.client.buffers.put(buffer)
	out, err := appendHead(*buffer, r, host)
	if err != nil {
		return nil, err
	}
	small := r.Body != nil && r.Length <= together
	if small {
		head := len(out)
		out = append(out, make([]byte, r.Length)...)
		if _, err := io.ReadFull(r.Body, out[head:]); err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
	}
	*buffer = out
	if r.Ready != nil {
		if err := r.Ready(); err != nil {
			return nil, err
		}
	}
	if _, err := x.conn.Write(out); err != nil {
		return nil, err
	}
	if r.Body == nil || small {
		return nil, nil
	}
	return &io.LimitedReader{R: r.Body, N: r.Length}, nil
}

// writeBody writes the rest of a large body. An engine may reply before it has read all of it, and
// close: that is told by the reply, if one comes, so the failure is kept for when none does.
func (x *exchange) writeBody(rest *io.LimitedReader) {
	buffer := x.client.buffers.get()
	defer x.client.buffers.put(buffer)
	piece := (*buffer)[:together]
	for {
		n, err := rest.Read(piece)
		if n > 0 {
			if _, err := x.conn.Write(piece[:n]); err != nil {
				x.broke(err)
				return
			}
		}
		if errors.Is(err, io.EOF) && rest.N == 0 {
			x.progress.Store(wholeWritten)
			return
		}
		if err != nil {
			x.broke(fmt.Errorf("body: %w", err))
			_ = x.conn.tcp.Close() // the engine must not wait for what will not come
			return
		}
	}
}

func (x *exchange) broke(err error) {
	x.written = err
	x.progress.Store(broken)
}

// ownHeaders are written from the request itself, or never: an engine must not be told of an
// Idempotency-Key that invites somebody to send again.
func ownHeader(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Idempotency-Key", "X-Idempotency-Key":
		return true
	}
	return false
}

// appendHead appends the request line and headers.
func appendHead(out []byte, r *Request, host string) ([]byte, error) {
	if !lineSafe(r) {
		return nil, fmt.Errorf("method or target: %w", errUnsafe)
	}
	out = append(out, r.Method...)
	out = append(out, ' ')
	out = append(out, r.Target...)
	out = append(out, " HTTP/1.1\r\nHost: "...)
	out = append(out, host...)
	for name, values := range r.Header {
		if ownHeader(name) {
			continue
		}
		for _, v := range values {
			if !headerSafe(name) || !headerSafe(v) {
				return nil, fmt.Errorf("header %q: %w", name, errUnsafe)
			}
			out = append(out, "\r\n"...)
			out = append(out, name...)
			out = append(out, ": "...)
			out = append(out, v...)
		}
	}
	if r.Body != nil || r.Method == http.MethodPost || r.Method == http.MethodPut {
		out = append(out, "\r\nContent-Length: "...)
		out = strconv.AppendInt(out, r.Length, 10)
	}
	return append(out, "\r\n\r\n"...), nil
}

var errUnsafe = errors.New("it would end the line that it stands in")

// lineSafe refuses a request line that would be two, or another.
func lineSafe(r *Request) bool { return targetSafe(r.Method) && targetSafe(r.Target) }

// targetSafe refuses what would end the request line, or its part of it, before its time.
func targetSafe(s string) bool { return headerSafe(s) && !strings.Contains(s, " ") }

// headerSafe refuses what would begin another header or request.
func headerSafe(s string) bool {
	for i := range len(s) {
		if s[i] == '\r' || s[i] == '\n' || s[i] == 0 {
			return false
		}
	}
	return true
}
