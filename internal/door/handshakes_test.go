package door

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
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
	reached, on := make(chan struct{}, 100), make(chan struct{})
	p := secure(t, func(*tls.ClientHelloInfo) (*tls.Config, error) {
		reached <- struct{}{}
		<-on
		return nil, nil
	})
	places := cap(p.door.handshakes)
	var ends []<-chan error
	for range places + 3 {
		_, ended := p.from("127.0.0.2").greet()
		ends = append(ends, ended)
	}
	for range places {
		<-reached
	}
	p.until("all are let in", func(c Counts) bool { return c.Open == places+3 })
	for range 3 {
		select {
		case <-reached:
			t.Fatalf("more than %d handshakes are computed at once", places)
		case on <- struct{}{}:
		}
		<-reached // the next one's turn
	}
	close(on)
	for _, ended := range ends {
		if err := <-ended; err != nil {
			t.Error(err)
		}
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
