package sglang

import (
	"net/http"
	"net/netip"
	"time"
)

const (
	// idleTimeout is how long a connection may rest before it is closed rather than reused. The
	// engine closes after 5 s, and a request that meets the close half-way is an unknown outcome.
	idleTimeout = 2 * time.Second
	// dialTimeout bounds a connection attempt to a host that drops packets, in case the caller's
	// context allows more.
	dialTimeout = 10 * time.Second
	// maxHeaderBytes bounds the headers of a reply.
	maxHeaderBytes = 64 << 10
	// idlePerHost is how many resting connections one engine may hold open here.
	idlePerHost = 2
)

// NewTransport returns a transport to engines at any address: see Reach.NewTransport.
func NewTransport() *http.Transport {
	return Reach{Special: SpecialAllowed, Networks: everywhere()}.NewTransport()
}

func everywhere() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}

// NewTransport returns the transport on which clients of many engines may share, to engines within reach. It ignores
// proxy settings of the environment, since engines are inside the cluster, speaks HTTP/1.1, and
// sets no limit on connections per host, so that a hung call holds up no other.
func (r Reach) NewTransport() *http.Transport {
	return &http.Transport{
		DialContext:            r.Dial,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
}
