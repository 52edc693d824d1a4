package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// abuse is one way to misbehave.
type abuse struct {
	// many do it at once, each again and again.
	many int
	// every is the time between two beginnings of one of them; 0: it begins anew when it has ended.
	every time.Duration
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
	return map[string]abuse{
		"slow_headers": {many: crowd, do: dribble(head + "X-Slow: ")},
		"slow_bodies":  {many: crowd, do: dribble(withToken + "Content-Length: 60000\r\n\r\n{")},
		"oversized":    {many: 20, every: 100 * time.Millisecond, do: pour(withToken+"Content-Length: 100000000\r\n\r\n", 8<<20)},
		"malformed":    {many: 20, every: 100 * time.Millisecond, do: pour("\x00\r\n\r\nPOST  HTTP/9.9\r\n", 0)},
		"header_flood": {many: 20, every: 100 * time.Millisecond, do: pour(head+"X-Flood: ", 1<<20)},
		"half_open":    {many: crowd, plain: true, do: silent},
		"never_read":   {many: 500, do: neverRead},
		idleAbuse:      {many: 15_000, do: silentOnceServed},
	}
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

// counts are what the abuser tells about itself.
type counts struct{ open, made, failed atomic.Int64 }

// misbehave is the life of the abuser. It says once that it is at work, and then how it goes.
func misbehave(ctx context.Context, o *options) error {
	a, ok := abuses()[o.abuse]
	if !ok {
		return fmt.Errorf("no abuse %q", o.abuse)
	}
	// Its own work is not to be in the way of what is measured.
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	var n counts
	var all, begun sync.WaitGroup
	begun.Add(a.many)
	turns := make(chan struct{}, 64) // connections are made so many at once
	for i := range a.many {
		all.Go(func() { a.repeat(ctx, i, o, &n, turns, begun.Done) })
	}
	begun.Wait()
	say := time.NewTicker(5 * time.Second)
	defer say.Stop()
	fmt.Println("at work")
	for ctx.Err() == nil {
		select {
		case <-say.C:
			fmt.Fprintf(os.Stderr, "%s: %d connections are open, %d were made, %d were not\n", o.abuse, n.open.Load(), n.made.Load(), n.failed.Load())
		case <-ctx.Done():
		}
	}
	all.Wait()
	return nil
}

// repeat makes one connection after the other; begun is called once the first is made, or cannot be.
func (a abuse) repeat(ctx context.Context, i int, o *options, n *counts, turns chan struct{}, begun func()) {
	first := sync.OnceFunc(begun)
	defer first()
	if !o.together {
		a.awaitShare(ctx, i)
	}
	next := time.NewTicker(max(a.every, 10*time.Millisecond))
	defer next.Stop()
	for ctx.Err() == nil {
		turns <- struct{}{}
		c, err := a.connect(ctx, i, o.address)
		<-turns
		first()
		if err != nil {
			n.failed.Add(1)
		} else {
			n.made.Add(1)
			n.open.Add(1)
			_ = a.do(ctx, c) // that it is cut is what is expected
			_ = c.Close()
			n.open.Add(-1)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
}

// awaitShare spreads the beginnings of all over the time between two of one: strangers do not keep time together.
func (a abuse) awaitShare(ctx context.Context, i int) {
	share := time.NewTimer(a.every * time.Duration(i) / time.Duration(a.many))
	defer share.Stop()
	select {
	case <-share.C:
	case <-ctx.Done():
	}
}

// connect has each of them come from one of 32 addresses.
func (a abuse) connect(ctx context.Context, i int, address string) (net.Conn, error) {
	from := netip.AddrFrom4([4]byte{127, 0, 2, byte(1 + i%32)})
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: time.Minute}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil || a.plain {
		return c, err
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	secure := tls.Client(c, trusting())
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

// dribble sends a text, and then a byte each second.
func dribble(text string) func(context.Context, net.Conn) error {
	return func(ctx context.Context, c net.Conn) error {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
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
