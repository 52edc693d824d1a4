package door

import (
	"context"
	"net"
	"net/http"
)

// visitKey is where a context has its visit.
type visitKey struct{}

// visit is a connection that is inside, as it is watched.
type visit struct {
	conn  *conn
	lines *lines // nil: nobody counts
}

// welcome has a call begin of somebody who may make it.
func (d *Door) welcome(v visit) {
	if v.lines != nil {
		v.lines.trust()
	}
	d.move(v.conn.guest, works)
}

// Context is the ConnContext of a server whose callers are judged: LetIn finds the connection by it.
func (*Door) Context(ctx context.Context, c net.Conn) context.Context {
	if v := inside(c); v != nil {
		return context.WithValue(ctx, visitKey{}, visit{v, within[*lines](c)})
	}
	return ctx
}

// WatchJudged is Watch for a server whose callers are judged. A call is at work only once LetIn says so: until
// then, and if it never does, its connection rests.
func (d *Door) WatchJudged(c net.Conn, s http.ConnState) {
	if s != http.StateActive {
		d.Watch(c, s)
		return
	}
	if v := inside(c); v != nil && v.door == d {
		v.turn.leave()
	}
}

// LetIn says that the caller may make the call of that context, whose connection is at work until the call is answered.
// Without a connection of a door it does nothing.
func LetIn(ctx context.Context) {
	if v, ok := ctx.Value(visitKey{}).(visit); ok {
		v.conn.door.welcome(v)
	}
}
