package door

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Door lets connections into a port, up to so many at once, and has strangers take turns. It is safe for concurrent use. While mu is
// held nothing blocks, and no connection is closed.
type Door struct {
	turns turns

	mu     sync.Mutex
	guests guests // guarded by mu
}

// Counts are what a door has seen.
type Counts struct {
	// Open is how many connections there are, and Resting how many of them have no call that is being answered.
	Open, Resting int
	// Refused is how many were closed at their arrival, and Displaced how many had to go for others.
	Refused, Displaced int64
}

// New makes a door for so many connections at once; it panics below 1.
func New(most int) *Door {
	if most < 1 {
		panic(fmt.Sprintf("door: room for %d connections", most))
	}
	return &Door{turns: newTurns(), guests: newGuests(most)}
}

// Counts says how things stand.
func (d *Door) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := Counts{Open: d.guests.open, Refused: d.guests.refused, Displaced: d.guests.displaced}
	for _, h := range d.guests.crowd {
		c.Resting += h.resting.Len()
	}
	return c
}

// Guard is l behind the door. TLS, if any, belongs around what it returns. The server of the connections has
// Watch as its ConnState; without, all of them rest, and stay strangers, all the time.
func (d *Door) Guard(l net.Listener) net.Listener { return &listener{Listener: l, door: d} }

// listener accepts those that the door lets in.
type listener struct {
	net.Listener
	door *Door
}

// Accept returns the next connection that is let in.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if in := l.door.admit(c); in != nil {
			return in, nil
		}
		_ = c.Close() // nothing was promised on it
	}
}

// admit lets c in, closing whom it displaces; nil: there is no room.
func (d *Door) admit(c net.Conn) net.Conn {
	d.mu.Lock()
	in, displaced := d.guests.admit(homeOf(c.RemoteAddr()), func() { _ = c.Close() })
	d.mu.Unlock()
	if displaced != nil {
		displaced.leave()
	}
	if in == nil {
		return nil
	}
	return &conn{Conn: c, door: d, guest: in, turn: turn{of: d.turns}}
}

func (d *Door) move(g *guest, to phase) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guests.move(g, to)
}

// Watch is told by an http.Server what its connections do. Those of other doors are none of its business.
func (d *Door) Watch(c net.Conn, s http.ConnState) {
	v := inside(c)
	if v == nil || v.door != d {
		return
	}
	switch s {
	case http.StateActive, http.StateHijacked: // somebody who took it over uses it
		v.turn.leave()
		d.welcome(visit{v, within[*lines](c)})
	case http.StateIdle:
		d.move(v.guest, rests)
		if l := within[*lines](c); l != nil {
			l.begin()
		}
	case http.StateNew, http.StateClosed: // known from its arrival, and from Close
	}
}

// inside finds the door's connection in one that may be TLS; nil: there is none.
func inside(c net.Conn) *conn { return within[*conn](c) }

// within finds a connection of that kind in another; the zero value: there is none.
func within[T net.Conn](c net.Conn) (none T) {
	for c != nil {
		if v, ok := c.(T); ok {
			return v
		}
		around, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return none
		}
		c = around.NetConn()
	}
	return none
}

// conn is a connection that is inside.
type conn struct {
	net.Conn
	door  *Door
	guest *guest
	turn  turn
}

func (c *conn) Read(b []byte) (int, error) {
	c.turn.end()
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.turn.begin()
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.turn.end()
	return c.Conn.Write(b)
}

// Close gives its place back.
func (c *conn) Close() error {
	c.turn.leave()
	c.door.move(c.guest, gone)
	return c.Conn.Close()
}

// homeOf is the address whose guest a connection is. Those without one, as on a pipe, share one.
func homeOf(a net.Addr) netip.Prefix {
	remote, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return Home(remote.AddrPort().Addr())
}

// Home is what an address counts as where callers share something: one address of IPv4, or a /64 of IPv6, from
// which one machine may choose its addresses. What is no address has the zero value.
func Home(address netip.Addr) netip.Prefix {
	const network = 64
	address = address.Unmap().WithZone("")
	home, _ := address.Prefix(min(address.BitLen(), network)) // such a number of bits there always is
	return home
}
