package door

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"sync/atomic"
)

const (
	// mostLines is how many lines may come on a connection for a call that nobody has been let in for. net/http
	// bounds headers in bytes only, and makes a hundred of a line of five: what a header flood fills is memory, and not the
	// limit. Clients send some twenty lines; with them the beginning of a body may come.
	mostLines = 320
	// anyNumber is for the bodies of those who have been let in.
	anyNumber = math.MaxInt64
)

// errTooManyLines ends a connection; net/http answers it with 400.
var errTooManyLines = errors.New("the headers have too many lines")

// Count has the connections of l, which is what HTTP is read from, count the lines of headers. It belongs around TLS, if
// there is any, and the door around which that is. Since net/http sees no TLS then, handshakes that fail are told to log in its
// stead, with the words that it has for them.
func Count(l net.Listener, log *log.Logger) net.Listener { return counting{l, log} }

type counting struct {
	net.Listener
	log *log.Logger
}

// Accept returns the next connection.
func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &lines{Conn: c, log: l.log}
	v.begin()
	return v, nil
}

// lines is a connection of which so many more lines are read.
type lines struct {
	net.Conn
	log     *log.Logger
	greeted bool // of whoever reads
	left    atomic.Int64
}

// begin has the lines of the next call counted.
func (c *lines) begin() { c.left.Store(mostLines) }

// trust ends the count until the next call.
func (c *lines) trust() { c.left.Store(anyNumber) }

// NetConn is the connection below.
func (c *lines) NetConn() net.Conn { return c.Conn }

// greet makes the handshake, if there is one to make. The deadline for it is that for headers.
func (c *lines) greet() error {
	secure, ok := c.Conn.(*tls.Conn)
	if c.greeted || !ok {
		return nil
	}
	c.greeted = true
	err := secure.HandshakeContext(context.Background()) // it ends with the deadline, or with the connection
	if err == nil {
		return nil
	}
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis port is served by TLS.\n")
	}
	c.log.Printf("http: TLS handshake error from %s: %v", c.RemoteAddr(), err)
	return err
}

// Read fails once there are too many lines, and from then on: net/http may look into what comes and read again.
func (c *lines) Read(b []byte) (int, error) {
	if c.left.Load() < 0 {
		return 0, errTooManyLines
	}
	if err := c.greet(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	for {
		left := c.left.Load()
		if left == anyNumber {
			return n, err
		}
		after := left - int64(bytes.Count(b[:n], []byte{'\n'}))
		if !c.left.CompareAndSwap(left, after) {
			continue // trusted, or at the next call, since
		}
		if after < 0 {
			return 0, errTooManyLines
		}
		return n, err
	}
}

// CloseWrite is what net/http looks for, to be heard before it hangs up.
func (c *lines) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
