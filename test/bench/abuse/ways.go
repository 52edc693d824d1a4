package main

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// abuse is one way to misbehave.
type abuse struct {
	// many do it at once, each again and again.
	many int
	// every is the time between two beginnings of one of them; 0: it begins anew when it has ended.
	every time.Duration
	// together has all of them begin at one moment instead of evenly.
	together bool
	// plain leaves TLS out.
	plain bool
	// do misbehaves on one connection until that is cut, or ctx done.
	do func(ctx context.Context, c net.Conn) error
}

// abuses are those of this command's description, by name.
func abuses() map[string]abuse {
	const crowd = 2000
	head := "POST " + poolPath + "/leases HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	withToken := head + "Authorization: " + bearer + "\r\n"
	all := map[string]abuse{
		"slow_headers": {many: crowd, do: dribble(head + "X-Slow: ")},
		"slow_bodies":  {many: crowd, do: dribble(withToken + "Content-Length: 60000\r\n\r\n{")},
		"half_open":    {many: crowd, plain: true, do: silent},
		"never_read":   {many: 500, do: neverRead},
		idleAbuse:      {many: 15_000, do: silentOnceServed},
	}
	for name, do := range map[string]func(context.Context, net.Conn) error{
		"oversized":    pour(withToken+"Content-Length: 100000000\r\n\r\n", 8<<20),
		"malformed":    pour("\x00\r\n\r\nPOST  HTTP/9.9\r\n", 0),
		"header_flood": pour(head+"X-Flood: ", 1<<20),
	} {
		all[name] = abuse{many: 20, every: 100 * time.Millisecond, do: do}
		all[name+"_bursts"] = abuse{many: 20, every: 100 * time.Millisecond, together: true, do: do}
	}
	return all
}

// names are those of all abuses; the one that leaves most behind comes last.
func names() []string {
	all := abuses()
	delete(all, idleAbuse)
	var out []string
	for name := range all {
		out = append(out, name)
	}
	slices.Sort(out)
	return append(out, idleAbuse)
}

// dribble sends a text, and then a byte each second.
func dribble(text string) func(context.Context, net.Conn) error {
	return func(ctx context.Context, c net.Conn) error {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
		return drip(ctx, c)
	}
}

// drip sends a byte each second until the connection is cut.
func drip(ctx context.Context, c net.Conn) error {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		select {
		case <-each.C:
			if _, err := io.WriteString(c, "x"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pour sends a text and so many bytes as fast as it can, and reads what is answered.
func pour(text string, more int) func(context.Context, net.Conn) error {
	return func(_ context.Context, c net.Conn) error {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, err := io.WriteString(c, text+strings.Repeat("x", more))
		_, _ = io.Copy(io.Discard, c)
		return err
	}
}

// silent says nothing until it is cut.
func silent(ctx context.Context, c net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, err := c.Read(make([]byte, 1))
	return err
}

// silentOnceServed makes one call, by which it is known as a client, and then none.
func silentOnceServed(ctx context.Context, c net.Conn) error {
	if _, err := io.WriteString(c, "GET "+poolPath+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, err := io.Copy(io.Discard, c)
	return err
}

// neverRead asks for a stream and reads none of it.
func neverRead(ctx context.Context, c net.Conn) error {
	if _, err := io.WriteString(c, "GET "+poolPath+"/watch?every=1 HTTP/1.1\r\nHost: a\r\nAuthorization: "+bearer+"\r\n\r\n"); err != nil {
		return err
	}
	// Until the server has given it up, which a connection that is not read tells only when it is written to.
	return drip(ctx, c)
}
