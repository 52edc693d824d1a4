package door

import (
	"context"
	"net"
	"net/http"
)

// connKey is where a context has its connection.
type connKey struct{}

// Context is the ConnContext of a server whose callers are judged: LetIn finds the connection by it.
func (*Door) Context(ctx context.Context, c net.Conn) context.Context {
	if v := inside(c); v != nil {
		return context.WithValue(ctx, connKey{}, v)
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
	if v, ok := ctx.Value(connKey{}).(*conn); ok {
		v.door.move(v.guest, works)
	}
}
