package door

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// certified is a configuration with a certificate.
func certified(t *testing.T) *tls.Config {
	t.Helper()
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS()
	t.Cleanup(made.Close)
	c := made.TLS.Clone()
	c.NextProtos = nil
	return c
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
	c := certified(t)
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		// A place is given back later than inside is left, so there is one for each inside.
		if n, held := inside.Add(1), len(at.Load().door.turns); n > int64(held) {
			t.Errorf("%d handshakes are computed with %d places taken", n, held)
		}
		inside.Add(-1)
		return nil, nil
	}
	p := open(t, 1000, c)
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

// told calls read after each read that brought something, before the reader goes on.
type told struct {
	net.Conn
	read func()
}

func (c told) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read()
	}
	return n, err
}

func (c told) NetConn() net.Conn { return c.Conn }

func TestEachStepUntilTheFirstCallHasATurn(t *testing.T) {
	var reads, paced atomic.Int64
	watch := func(p *place, c net.Conn) net.Conn {
		return told{c, func() {
			reads.Add(1)
			paced.Add(int64(len(p.door.turns)))
		}}
	}
	c := certified(t)
	// The client has to greet again, since it does not begin with the one group that the server knows.
	c.CurvePreferences = []tls.CurveID{tls.CurveP384}
	p := open(t, 1000, c, watch)
	v, ended := p.from("127.0.0.2").greet()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	v.reads = bufio.NewReader(v)
	v.send("/")
	if !v.answered() {
		t.Fatal("the first call is not answered")
	}
	const steps = 4 // a greeting, another, the end of the handshake, a call
	first := reads.Load()
	if first < steps || paced.Load() != first {
		t.Errorf("%d reads up to the first call, %d of them with a turn; want %d or more, and all", first, paced.Load(), steps)
	}
	v.send("/")
	if !v.answered() {
		t.Fatal("the second call is not answered")
	}
	if reads.Load() == first || paced.Load() != first {
		t.Errorf("%d reads after the first call, %d of them with a turn; want some, and none", reads.Load()-first, paced.Load()-first)
	}
}

func TestWhoeverFindsNoPlaceWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := make(turns, 1)
		first, second, third := turn{of: places}, turn{of: places}, turn{of: places}
		first.begin()
		go second.begin()
		synctest.Wait()
		second.end()
		if second.held.Load() || len(places) != 1 {
			t.Fatal("two have the one place, or a place was given back by somebody who had none")
		}
		first.end()
		first.end()
		synctest.Wait()
		if !second.held.Load() || len(places) != 1 {
			t.Fatal("the place went to nobody")
		}
		go third.begin()
		synctest.Wait()
		third.leave() // closed while it waits
		second.end()
		synctest.Wait()
		if len(places) != 0 {
			t.Fatal("a place went to somebody who is not there to give it back")
		}
	})
}

func TestNobodyKeepsATurnByReadingNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(1)
		theirs, ours := net.Pipe()
		in := d.admit(ours)
		go theirs.Write([]byte("x"))
		if _, err := in.Read(make([]byte, 1)); err != nil || len(d.turns) != 1 {
			t.Fatalf("%d turns, %v; want one", len(d.turns), err)
		}
		go in.Write([]byte("x"))
		synctest.Wait()
		if len(d.turns) != 0 {
			t.Error("whoever is written to has a turn")
		}
		theirs.Close()
		in.Close()
	})
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
	p := open(t, 1000, certified(t))
	closed := make(chan struct{})
	var ends []<-chan error
	for range cap(p.door.turns) + 3 {
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
	p := open(t, 1000, certified(t))
	for range cap(p.door.turns) + 3 {
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

func TestACallThatIsNoneGivesItsTurnBack(t *testing.T) {
	p := open(t, 1000, nil)
	for range cap(p.door.turns) + 3 {
		v := p.from("127.0.0.2")
		if _, err := io.WriteString(v, "\x00 is no method\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		v.answered() // that it is refused, or cut at once
	}
	v := p.from("127.0.0.3")
	v.send("/")
	if !v.answered() {
		t.Error("nobody gets in any more")
	}
}
