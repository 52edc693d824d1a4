package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Authorizer says whether a caller may make a call. It is asked before a call's pool is looked for or
// its body read, without a sender; once more for the sender that the call then names, before anything
// changes; after an acquire has waited; and at each heartbeat of a watch.
type Authorizer interface {
	// Authorize returns nil, or a *router.Refusal for ReasonUnauthenticated, ReasonForbidden or
	// ReasonAuthenticationUnavailable.
	Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error
	// Authenticate returns nil if the caller is anybody, whatever it may do, or a *router.Refusal for
	// ReasonUnauthenticated or ReasonAuthenticationUnavailable: for a call that names no pool.
	Authenticate(r *http.Request) error
}

// Config is what a Server is made of.
type Config struct {
	// Pools finds the tables; required.
	Pools *router.Pools
	// Keys make and verify lease tokens; required.
	Keys Keys
	// BindAddress is the host:port that Start listens on; empty: 127.0.0.1:8085. A host
	// beyond loopback needs an Authorizer.
	BindAddress string
	// Authorizer guards every call; nil: none, and the server stays on loopback.
	Authorizer Authorizer
	// Hosts are the names and addresses that clients may call, without ports, besides localhost and the loopback
	// addresses, if there is no Authorizer; with one they may call any.
	Hosts []string
	// Leadership says which replica answers; nil: this one, the only one there is.
	Leadership Leadership
	// DialLeader connects to the leader by TLS; nil: the leader is called without. The caller's own token
	// goes along, by which the leader judges the call as if it had come there first.
	DialLeader func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock is read once or twice per call; nil: time.Now.
	Clock func() time.Time
	// Log gets what no caller is told; nil: nothing is logged.
	Log *slog.Logger
	// Observer is told of every call about a lease; nil: nobody is.
	Observer Observer
	// Limits: the zero value of each field stands for its default.
	Limits Limits
}

// Limits bound what callers can make the server hold, and for how long.
type Limits struct {
	// BodyBytes bounds the body of one call; default 64 KiB.
	BodyBytes int64
	// BatchBytes bounds the body of leases:batch; default 1 MiB.
	BatchBytes int64
	// BatchRequests bounds the acquires of one batch; default 512.
	BatchRequests int
	// LargeBytes bounds the memory for bodies and answers of more than 4 KiB of all calls together, half of it
	// that for those of one pool; default 128 MiB. Beyond it a call is answered Contended.
	LargeBytes int64
	// HeaderBytes bounds the request line and headers; default 16 KiB.
	HeaderBytes int
	// Wait bounds waitSeconds; default 600 s.
	Wait time.Duration
	// WaitersPerPool bounds the acquires and releases that wait at once for one pool;
	// default 16,384. Beyond it a call that would wait is answered Contended.
	WaitersPerPool int
	// WatchersPerPool bounds the watch streams of one pool; default 1,024.
	WatchersPerPool int
	// Read bounds the time for headers, and from then on, once the caller is let in, that for the body; default
	// 10 s.
	Read time.Duration
	// Unread bounds the time for the rest of a body that nobody reads, as that of a call that is refused;
	// default UnreadTime.
	Unread time.Duration
	// Write bounds the time that a client may take to read an answer; default 30 s.
	Write time.Duration
	// Idle closes a connection without calls; default 2 min.
	Idle time.Duration
	// Shutdown bounds how long calls under way may take once the server stops; default 10 s.
	Shutdown time.Duration
	// Heartbeat is the longest silence of a watch stream; default 15 s.
	Heartbeat time.Duration
	// WatchPeriod is how often a watched pool is looked at; default 250 ms.
	WatchPeriod time.Duration
	// WatchLinger is how long a pool is looked at after its last watcher left, so that one
	// who comes back finds what it missed; default 5 min.
	WatchLinger time.Duration
	// WatchHistory is how many events of a pool are kept for resumption; default 1,024.
	WatchHistory int
}

const defaultBindAddress = "127.0.0.1:8085"

func (l Limits) withDefaults() Limits {
	return Limits{
		BodyBytes: cmp.Or(l.BodyBytes, 64<<10), BatchBytes: cmp.Or(l.BatchBytes, 1<<20),
		LargeBytes: cmp.Or(l.LargeBytes, 128<<20), BatchRequests: cmp.Or(l.BatchRequests, 512), HeaderBytes: cmp.Or(l.HeaderBytes, 16<<10),
		Wait: cmp.Or(l.Wait, 10*time.Minute), WaitersPerPool: cmp.Or(l.WaitersPerPool, 16384),
		WatchersPerPool: cmp.Or(l.WatchersPerPool, 1024), Read: cmp.Or(l.Read, 10*time.Second),
		Unread: cmp.Or(l.Unread, UnreadTime),
		Write:  cmp.Or(l.Write, 30*time.Second), Idle: cmp.Or(l.Idle, 2*time.Minute),
		Shutdown: cmp.Or(l.Shutdown, 10*time.Second), Heartbeat: cmp.Or(l.Heartbeat, 15*time.Second),
		WatchLinger: cmp.Or(l.WatchLinger, 5*time.Minute),
		WatchPeriod: cmp.Or(l.WatchPeriod, 250*time.Millisecond), WatchHistory: cmp.Or(l.WatchHistory, 1024),
	}
}

// Validate names the first field that cannot be used.
func (c Config) Validate() error {
	if c.Pools == nil {
		return errors.New("Pools: required")
	}
	if err := c.Keys.Validate(); err != nil {
		return err
	}
	if err := c.Limits.validate(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(cmp.Or(c.BindAddress, defaultBindAddress))
	if err != nil {
		return fmt.Errorf("BindAddress: %w", err)
	}
	if c.Authorizer == nil && !loopback(host) {
		return fmt.Errorf("BindAddress %q: beyond loopback callers must be authenticated, and no Authorizer is configured", c.BindAddress)
	}
	return nil
}

// validate refuses negative limits: none of them means "without limit".
func (l Limits) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"BodyBytes", l.BodyBytes}, {"BatchBytes", l.BatchBytes}, {"LargeBytes", l.LargeBytes}, {"BatchRequests", int64(l.BatchRequests)},
		{"HeaderBytes", int64(l.HeaderBytes)}, {"Wait", int64(l.Wait)}, {"WaitersPerPool", int64(l.WaitersPerPool)},
		{"WatchersPerPool", int64(l.WatchersPerPool)}, {"Read", int64(l.Read)}, {"Write", int64(l.Write)},
		{"Idle", int64(l.Idle)}, {"Unread", int64(l.Unread)}, {"Shutdown", int64(l.Shutdown)}, {"Heartbeat", int64(l.Heartbeat)},
		{"WatchLinger", int64(l.WatchLinger)}, {"WatchPeriod", int64(l.WatchPeriod)}, {"WatchHistory", int64(l.WatchHistory)},
	} {
		if f.value < 0 {
			return fmt.Errorf("Limits.%s: must not be negative", f.name)
		}
	}
	return nil
}

// loopback: an address of this machine only. Names other than localhost are not resolved,
// since what they resolve to may change.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
