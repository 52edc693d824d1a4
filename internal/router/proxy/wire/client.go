package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Written says whether any of a request may have reached the engine.
type Written uint8

// The values of Written. The zero value is the safe one.
const (
	// PerhapsSome: a byte was taken by the operating system, or it cannot be told.
	PerhapsSome Written = iota
	// NoByte: it is certain that no byte was.
	NoByte
)

// Error is the failure of an exchange before its reply's headers were read.
type Error struct {
	// Written says whether the request may have been sent.
	Written Written
	// Stage is what failed: dial, write or read.
	Stage string
	Err   error
}

func (e *Error) Error() string { return e.Stage + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// WrittenOf is what err says of the request, PerhapsSome if it says nothing.
func WrittenOf(err error) Written {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Written
	}
	return PerhapsSome
}

// Request is one request. Its body is read once.
type Request struct {
	Method string
	// Target is the path and query, beginning with a slash.
	Target string
	Header http.Header
	// Body is nil if there is none; Length is its exact length.
	Body   io.Reader
	Length int64
	// Ready, if not nil, is called once a connection is there and before the first byte is written.
	// Its error ends the exchange with nothing sent.
	Ready func() error
}

// Config says how connections are made. The zero value is ready for use.
type Config struct {
	// Dial connects; nil: TCP with a keep-alive of 15 s, by which a dead host is noticed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DialTimeout bounds a connection attempt; 0: 10 s.
	DialTimeout time.Duration
	// IdleTime is how long a connection may rest and still be used; 0: 2 s.
	IdleTime time.Duration
	// IdlePerEngine is how many connections to one engine may rest; 0: 64.
	IdlePerEngine int
	// HeaderBytes bounds a reply's headers; 0: 64 KiB.
	HeaderBytes int64
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	c.IdleTime = cmp.Or(c.IdleTime, 2*time.Second)
	c.IdlePerEngine = cmp.Or(c.IdlePerEngine, 64)
	c.HeaderBytes = cmp.Or(c.HeaderBytes, 64<<10)
	return c
}

// Client makes exchanges with any number of engines. It is safe for concurrent use; Close it to
// close the connections that rest.
type Client struct {
	cfg     Config
	idle    idleConns
	buffers buffers
}

// New returns a client.
func New(c Config) *Client {
	c = c.withDefaults()
	return &Client{cfg: c, idle: idleConns{perEngine: c.IdlePerEngine, keep: c.IdleTime}}
}

// Close closes the connections that rest. Exchanges under way go on.
func (c *Client) Close() { c.idle.closeAll() }

// Do sends a request to the engine at base, "http://host:port" or "https://host:port", and returns
// the reply once its headers are there. The caller must close the reply's body. Until then the end
// of ctx cuts the connection. A failure is an *Error.
func (c *Client) Do(ctx context.Context, base string, r *Request) (*http.Response, error) {
	engine, err := url.Parse(base)
	if err != nil || engine.Host == "" {
		return nil, &Error{Written: NoByte, Stage: "dial", Err: fmt.Errorf("%q is no address of an engine", base)}
	}
	conn, err := c.conn(ctx, engine)
	if err != nil {
		return nil, &Error{Written: NoByte, Stage: "dial", Err: err}
	}
	x := &exchange{client: c, conn: conn, ctx: ctx, base: base, release: conn.cutWith(ctx)}
	return x.run(r, engine.Host)
}

// conn returns a connection that rests, or a new one.
func (c *Client) conn(ctx context.Context, engine *url.URL) (*conn, error) {
	if found := c.idle.take(engine.Scheme + "://" + engine.Host); found != nil {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	return c.cfg.dial(ctx, engine)
}
