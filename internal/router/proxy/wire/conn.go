package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"sync/atomic"
	"time"
)

// readBuffer is what a connection holds for reading, in bytes. Thousands are open at once.
const readBuffer = 4 << 10

// conn is a connection to an engine that counts what it sends.
type conn struct {
	net.Conn
	tcp    net.Conn // beneath TLS; Conn itself without
	reader *bufio.Reader
	// headroom is how much may still be read of a reply's headers; negative: no limit.
	headroom int64
	sent     atomic.Int64
	rested   time.Time // when it came to rest
}

func (c Config) dial(ctx context.Context, engine *url.URL) (*conn, error) {
	port := engine.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[engine.Scheme]
	}
	tcp, err := c.Dial(ctx, "tcp", net.JoinHostPort(engine.Hostname(), port))
	if err != nil {
		return nil, err
	}
	out := &conn{Conn: tcp, tcp: tcp, headroom: -1}
	if engine.Scheme == "https" {
		secure := tls.Client(tcp, &tls.Config{ServerName: engine.Hostname(), MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, tcp.Close())
		}
		out.Conn = secure
	}
	out.reader = bufio.NewReaderSize(readSide{out}, readBuffer)
	return out, nil
}

// Write counts what was taken. Beneath TLS that cannot be told, so there every attempt counts.
func (c *conn) Write(p []byte) (int, error) {
	if c.Conn != c.tcp {
		c.sent.Add(int64(len(p)))
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// readSide is a connection as its reader sees it: with a limit while headers are read.
type readSide struct{ c *conn }

func (r readSide) Read(p []byte) (int, error) {
	switch {
	case r.c.headroom < 0:
		return r.c.Conn.Read(p)
	case r.c.headroom == 0:
		return 0, errHeadersTooLong
	}
	p = p[:min(int64(len(p)), r.c.headroom)]
	n, err := r.c.Conn.Read(p)
	r.c.headroom -= int64(n)
	return n, err
}

var errHeadersTooLong = errors.New("the reply's headers are too long")

// cutWith cuts the connection when ctx ends, until the returned function is called. That
// function reports whether it came in time.
func (c *conn) cutWith(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { _ = c.Conn.SetDeadline(time.Unix(1, 0)) })
}

// open reports whether a connection at rest is seen to be open with nothing to read.
func (c *conn) open() bool { return c.reader.Buffered() == 0 && quiet(c.tcp) }
