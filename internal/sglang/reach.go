package sglang

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Special says what becomes of addresses that no engine ought to have: loopback, link-local, multicast and
// unspecified ones, those at which clouds tell machines of themselves, those of the API server, and those that
// lead to one of them.
type Special string

const (
	// SpecialRefused: they are never called.
	SpecialRefused Special = "Refuse"
	// SpecialAllowed: they are addresses like others, for a system on one machine.
	SpecialAllowed Special = "Allow"
)

// Reach says which addresses may be called as engines. Whoever writes a pool chooses URLs that the
// manager then calls from its own place in the network, with its own keys: Reach bounds what that is good for.
// Addresses of pods come from the API server, and are bound by Special only.
type Reach struct {
	// Networks are those in which static endpoints may be; none: there may be no static endpoint.
	Networks []netip.Prefix
	// Special says what becomes of special addresses; the zero value refuses them.
	Special Special
	// Forbidden tells further addresses that are never called, those of the API server; nil: there are none. It is
	// asked at each connection.
	Forbidden func(netip.AddrPort) bool
}

// ErrUnreachable: an address is none that engines may have.
var ErrUnreachable = errors.New("the manager may not call this address")

// Endpoint says whether a static endpoint may be called, as far as its URL tells: that of a name is told once
// it is resolved, at each connection. A refusal wraps ErrUnreachable.
func (r Reach) Endpoint(base BaseURL) error {
	host, port, err := net.SplitHostPort(base.HostPort())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if len(r.Networks) == 0 {
		return fmt.Errorf("%w: it allows no network to static endpoints (--engine-networks)", ErrUnreachable)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return r.check(net.JoinHostPort(host, port), true)
	}
	return nil // a name: Dial looks at what it resolves to
}

// inside refuses an address outside of the networks for static endpoints.
func (r Reach) inside(addr netip.Addr) error {
	addr = addr.Unmap()
	if slices.ContainsFunc(r.Networks, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return nil
	}
	return fmt.Errorf("%w: %s is in none of the networks for static endpoints (--engine-networks)", ErrUnreachable, addr)
}

// Dial connects, if the address may be called. A name belongs to a static endpoint, since pods have none: it
// must resolve into the networks for those, and what is looked at is the address that is connected to, so
// that a name which resolves otherwise a moment later gains nothing.
func (r Reach) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	_, notLiteral := netip.ParseAddr(host)
	dialer := &net.Dialer{
		Timeout: dialTimeout, KeepAlive: 15 * time.Second,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return r.check(resolved, notLiteral != nil)
		},
	}
	return dialer.DialContext(ctx, network, address)
}

// check says whether an address may be connected to; that of a static endpoint must be inside the networks for those.
func (r Reach) check(resolved string, static bool) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := r.special(to); err != nil || !static {
		return err
	}
	return r.inside(to.Addr())
}
