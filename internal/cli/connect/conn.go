package connect

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// conn is a pair of port-forward streams as a connection. It has no deadlines; whoever uses it cuts
// it by Close, as http.Transport does when a context ends.
type conn struct {
	link             httpstream.Connection
	data, complaints httpstream.Stream
	pod              string

	refused chan struct{} // closed once complaint is there or cannot come any more
	mu      sync.Mutex
	said    string // guarded by mu
	closing sync.Once
}

func newConn(link httpstream.Connection, data, complaints httpstream.Stream, pod string) *conn {
	c := &conn{link: link, data: data, complaints: complaints, pod: pod, refused: make(chan struct{})}
	go c.listen()
	return c
}

// longestComplaint bounds what is read of an error, in bytes.
const longestComplaint = 4 << 10

// listen reads why the other end could not connect, if it could not.
func (c *conn) listen() {
	defer close(c.refused)
	text, _ := io.ReadAll(io.LimitReader(c.complaints, longestComplaint)) // an end without a word is a good end
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said = strings.TrimSpace(string(text)); c.said != "" {
		_ = c.data.Reset()
	}
}

// complaint is what the other end said, nil if nothing.
func (c *conn) complaint() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == "" {
		return nil
	}
	return fmt.Errorf("port-forward to pod %s: %s", c.pod, c.said)
}

// Read tells the other end's complaint instead of a mere end of file.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.data.Read(p)
	if err == nil || n > 0 {
		return n, err
	}
	select {
	case <-c.refused:
	case <-time.After(time.Second): // the complaint is on its way, if there is one
	}
	if said := c.complaint(); said != nil {
		return 0, said
	}
	if errors.Is(err, io.EOF) {
		return 0, io.EOF
	}
	return 0, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.data.Write(p)
	if said := c.complaint(); err != nil && said != nil {
		return n, said
	}
	return n, err
}

// Close ends this connection and no other of the same port-forward.
func (c *conn) Close() error {
	c.closing.Do(func() {
		_ = c.data.Close()
		_ = c.data.Reset() // so that the other end does not wait to be read
		_ = c.complaints.Reset()
		c.link.RemoveStreams(c.data, c.complaints)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return forwarded("kubectl-berth") }
func (c *conn) RemoteAddr() net.Addr { return forwarded(c.pod) }

func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// forwarded is the name of an end of a port-forward.
type forwarded string

func (forwarded) Network() string  { return "portforward" }
func (f forwarded) String() string { return string(f) }
