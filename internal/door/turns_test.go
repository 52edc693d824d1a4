package door

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// secure is a place whose handshakes run through further, which may be nil.
func secure(t *testing.T, further func(*tls.ClientHelloInfo) (*tls.Config, error)) *place {
	t.Helper()
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS()
	t.Cleanup(made.Close)
	c := made.TLS.Clone()
	c.NextProtos, c.GetConfigForClient = nil, further
	return open(t, 1000, c)
}

// greet begins a handshake and goes on with it for as long as the connection can be read.
func (v *visitor) greet() (*visitor, <-chan error) {
	c, ended := tls.Client(v.Conn, &tls.Config{InsecureSkipVerify: true}), make(chan error, 1) //nolint:gosec // whose it is does not matter here
	go func() { ended <- c.HandshakeContext(v.t.Context()) }()
	return &visitor{Conn: c, t: v.t}, ended
}

func TestHandshakesTakeTurns(t *testing.T) {
	var at atomic.Pointer[place]
	var inside atomic.Int64
	p := secure(t, func(*tls.ClientHelloInfo) (*tls.Config, error) {
		// A place is given back later than inside is left, so there is one for each inside.
		if n, held := inside.Add(1), len(at.Load().door.handshakes); n > int64(held) {
			t.Errorf("%d handshakes are computed with %d places taken", n, held)
		}
		inside.Add(-1)
		return nil, nil
	})
	at.Store(p)
	var ends []<-chan error
	for range 20 {
		_, ended := p.from("127.0.0.2").greet()
		ends = append(ends, ended)
	}
	for _, ended := range ends {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestWhoeverFindsNoPlaceWaitsForOne(t *testing.T) {
	places := make(handshakes, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var first, second turn
	if err := first.take(t.Context(), places); err != nil {
		t.Fatal(err)
	}
	if err := second.take(gone, places); err == nil {
		t.Fatal("two have the one place")
	}
	second.end()
	if len(places) != 1 {
		t.Fatal("a place was given back by somebody who had none")
	}
	first.end()
	first.end()
	if err := second.take(t.Context(), places); err != nil {
		t.Fatal(err)
	}
}

// deaf is a client's side that hears nothing.
type deaf struct {
	net.Conn
	closed <-chan struct{}
}

func (d deaf) Read([]byte) (int, error) {
	<-d.closed
	return 0, net.ErrClosed
}

func TestWhoeverGreetsAndFallsSilentKeepsNoTurn(t *testing.T) {
	p := secure(t, nil)
	closed := make(chan struct{})
	var ends []<-chan error
	for range cap(p.door.handshakes) + 3 {
		v := p.from("127.0.0.2")
		v.Conn = deaf{v.Conn, closed}
		_, ended := v.greet()
		ends = append(ends, ended)
	}
	p.until("all are let in", func(c Counts) bool { return c.Open == len(ends) })
	_, ended := p.from("127.0.0.3").greet()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(closed)
	for _, ended := range ends {
		<-ended
	}
}

func TestAHandshakeThatFailsGivesItsTurnBack(t *testing.T) {
	p := secure(t, nil)
	for range cap(p.door.handshakes) + 3 {
		old := tls.Client(p.from("127.0.0.2").Conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}) //nolint:gosec // refused is what it wants to be
		if err := old.HandshakeContext(t.Context()); err == nil {
			t.Fatal("an old version is taken")
		}
	}
	_, ended := p.from("127.0.0.3").greet()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
