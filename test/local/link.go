package local

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Link is one manager's way to the API server. It can be cut, as a partition of the network would
// cut it, and slowed down.
type Link struct {
	listener net.Listener
	to       string // host:port of the API server
	end      context.CancelFunc

	mu sync.Mutex
	// whole is closed while the link carries. Guarded by mu.
	whole chan struct{}
	// delay is by how much answers come late. Guarded by mu.
	delay time.Duration
}

// newLink makes a link to that host:port, which carries until it is closed.
func newLink(to string) (*Link, error) {
	ctx, end := context.WithCancel(context.Background())
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		end()
		return nil, fmt.Errorf("link to the API server: %w", err)
	}
	l := &Link{listener: listener, to: to, end: end, whole: make(chan struct{})}
	close(l.whole)
	go l.serve(ctx)
	return l, nil
}

// Address is the host:port at which the API server is reached over the link.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut lets nothing pass from now on, in connections old and new, and closes none: whoever is at
// either end hears nothing at all.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
		l.whole = make(chan struct{})
	default: // it is cut already
	}
}

// Heal lets everything pass again, beginning with what has waited.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// Slow has every answer of the API server come that much later from now on.
func (l *Link) Slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

func (l *Link) close() {
	_ = l.listener.Close()
	l.end()
}

func (l *Link) serve(ctx context.Context) {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return // it was closed
		}
		go l.pass(ctx, in)
	}
}

// direction is which way bytes go.
type direction int

const (
	towardsServer direction = iota
	fromServer
)

// pass carries one connection until either side ends.
func (l *Link) pass(ctx context.Context, in net.Conn) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer in.Close()
	if !l.hold(ctx, time.Time{}) {
		return
	}
	dialer := net.Dialer{Timeout: time.Second}
	out, err := dialer.DialContext(ctx, "tcp", l.to)
	if err != nil {
		return // the other side sees its connection closed, as it would without a link
	}
	defer out.Close()
	go l.carry(ctx, end, out, in, towardsServer)
	go l.carry(ctx, end, in, out, fromServer)
	<-ctx.Done()
}

// piece is what was read at once, and when it may go on.
type piece struct {
	bytes []byte
	due   time.Time
}

// carry moves bytes one way. Reading goes on while pieces wait, so that a delay costs no throughput.
func (l *Link) carry(ctx context.Context, end context.CancelFunc, to, from net.Conn, way direction) {
	defer end()
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			room := make([]byte, 16<<10)
			n, err := from.Read(room)
			if err != nil {
				return
			}
			select {
			case pieces <- piece{room[:n], l.due(way, time.Now())}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for p := range pieces {
		if !l.hold(ctx, p.due) {
			return
		}
		if _, err := to.Write(p.bytes); err != nil {
			return
		}
	}
}

// due is when what was read at a time may go on.
func (l *Link) due(way direction, read time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if way == fromServer {
		return read.Add(l.delay)
	}
	return read
}

// hold waits until then, and until the link is whole. It reports whether ctx is still on.
func (l *Link) hold(ctx context.Context, until time.Time) bool {
	if rest := time.Until(until); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	select {
	case <-whole:
		return true
	case <-ctx.Done():
		return false
	}
}
