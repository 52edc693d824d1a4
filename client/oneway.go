package client

import (
	"errors"
	"net"
	"sync/atomic"
)

// errWindowClosed is returned by the first write of a request whose start window has passed.
var errWindowClosed = errors.New("the start window of the lease has passed")

// oneWay is a connection that carries one request. It refuses the first byte outside the start
// window, knows whether any byte was written, and tells when the last one was.
type oneWay struct {
	net.Conn
	mayStart func() bool
	wrote    func()
	// sealed is true for a connection under TLS, on which a failed write may have sent something
	// without saying so.
	sealed bool

	begun  atomic.Bool
	handed atomic.Bool
}

// complete says that the whole request has been handed to the buffer in front of Write: the next
// write carries its last byte. If it was flushed already there is none, and the reply's first byte
// tells instead.
func (c *oneWay) complete() { c.handed.Store(true) }

func (c *oneWay) Write(b []byte) (int, error) {
	first := !c.begun.Load()
	if first && !c.mayStart() {
		return 0, errWindowClosed
	}
	// Set before the write: the engine may answer, and the reply be judged, before Write returns.
	c.begun.Store(true)
	n, err := c.Conn.Write(b)
	if first && n == 0 && err != nil && !c.sealed {
		c.begun.Store(false)
	}
	if err == nil && c.handed.Load() {
		c.wrote()
	}
	return n, err
}
