package field

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
)

// network connects by name, in memory.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener // guarded by mu; by host:port
}

// listen accepts what is dialled to address.
func (n *network) listen(address string) *listener {
	l := &listener{address: address, incoming: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

// Dial connects to whoever listens at address; nobody there is a refused connection.
func (n *network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case l.incoming <- far:
		return near, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve answers at address until the test ends.
func (n *network) serve(t *testing.T, address string, handler http.Handler) {
	t.Helper()
	server := &http.Server{Handler: handler}
	l := n.listen(address)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close() // nobody is left to be answered
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// listener is a net.Listener of a network.
type listener struct {
	address  string
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return memory(l.address) }

// memory is an address of a network.
type memory string

func (memory) Network() string  { return "memory" }
func (m memory) String() string { return string(m) }
