package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

// counts are what the abuser tells about itself.
type counts struct{ open, made, failed atomic.Int64 }

// misbehave is the life of the abuser. It says once that it is at work, and then how it goes.
func misbehave(ctx context.Context, o *options) error {
	a, ok := abuses()[o.abuse]
	if !ok {
		return fmt.Errorf("no abuse %q", o.abuse)
	}
	// Its own work is not to be in the way of what is measured.
	if err := child.ComeLast(); err != nil {
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
	if !a.together {
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
