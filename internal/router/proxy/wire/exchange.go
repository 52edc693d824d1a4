package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// exchange is one request and its reply on one connection.
type exchange struct {
	client  *Client
	conn    *conn
	ctx     context.Context
	base    string
	release func() bool

	writing  sync.WaitGroup
	progress atomic.Int32 // a progress of the request
	written  error        // why the body could not be written; read after writing is done
	ending   sync.Once
}

// The progress of writing a request. Only a whole one lets its connection be used again.
const (
	wholeWritten int32 = iota
	underWay
	broken
)

// run sends the request and reads the reply's headers.
func (x *exchange) run(r *Request, host string) (*http.Response, error) {
	before := x.conn.sent.Load()
	rest, err := x.writeHead(r, host)
	if err != nil {
		x.end(cut)
		return nil, x.failure("write", before, err)
	}
	if rest != nil {
		x.progress.Store(underWay)
		x.writing.Go(func() { x.writeBody(rest) })
	}
	resp, err := x.readHead(r.Method)
	if err != nil {
		x.end(cut)
		return nil, x.failure("read", before, errors.Join(err, x.written))
	}
	resp.Body = &body{x: x, from: resp.Body, last: resp.Close}
	return resp, nil
}

// failure says what err means: with no byte sent since before, nothing has happened.
func (x *exchange) failure(stage string, before int64, err error) *Error {
	e := &Error{Stage: stage, Err: err}
	if x.conn.sent.Load() == before {
		e.Written = NoByte
	}
	if cause := context.Cause(x.ctx); cause != nil {
		e.Err = cause
	}
	return e
}

// readHead reads the reply's status and headers, past those of interim replies.
func (x *exchange) readHead(method string) (*http.Response, error) {
	for {
		x.conn.headroom = x.client.cfg.HeaderBytes
		resp, err := http.ReadResponse(x.conn.reader, &http.Request{Method: method})
		x.conn.headroom = -1
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the engine changes the protocol, which nobody asked for")
		}
		if resp.StatusCode >= 200 {
			return resp, nil
		}
	}
}

// fate is what becomes of a connection after its exchange.
type fate uint8

const (
	cut fate = iota
	rest
)

// end ends the exchange, once.
func (x *exchange) end(f fate) {
	x.ending.Do(func() {
		inTime := x.release()
		if f == cut || !inTime {
			_ = x.conn.tcp.Close() // not TLS's own close, which would wait to say goodbye
			x.writing.Wait()
			return
		}
		x.client.idle.put(x.base, x.conn)
	})
}

// body is a reply's body. Its end, if reached, lets the connection rest; closing it before cuts.
type body struct {
	x    *exchange
	from io.ReadCloser
	last bool // the engine closes the connection after this reply
	err  error
}

// Read reads on. A body that ends too early is an error other than io.EOF.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	if err != nil {
		b.err = err
		if cause := context.Cause(b.x.ctx); cause != nil && !errors.Is(err, io.EOF) {
			b.err = cause
		}
	}
	return n, b.err
}

// Close ends the exchange. Unless the reply was read to its end, that cuts the connection.
func (b *body) Close() error {
	if errors.Is(b.err, io.EOF) && !b.last && b.x.progress.Load() == wholeWritten {
		b.x.end(rest)
	} else {
		b.x.end(cut)
	}
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
	}
	return nil
}
