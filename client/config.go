package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Dialer opens a connection to an engine, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Config says how to reach a pool. Only BaseURL is required.
type Config struct {
	// BaseURL is the pool in the router's API:
	// https://host/v1alpha1/namespaces/NAMESPACE/inferencepools/NAME. Trailing slashes do not matter.
	BaseURL string
	// Token gives the bearer token for the router, on each call; nil sends none.
	Token func(ctx context.Context) (string, error)
	// APIKey gives the engines' api-key, on each generation; nil sends none.
	APIKey func(ctx context.Context) (string, error)
	// Traceparent gives the caller's W3C trace context, on each call to the router and to an engine; nil
	// or an empty one: that which the router gives the lease, if it traces.
	Traceparent func(ctx context.Context) string
	// TLS is how the pool's own transport trusts the router, and shows who it is; nil trusts the
	// system's roots. Neither it nor CAFile is used together with Transport.
	TLS *tls.Config
	// CAFile names the authorities that the router is trusted by, as PEM, in the place of those of TLS; empty
	// leaves these. It is read again for each call, since authorities are replaced while a process runs.
	CAFile string
	// Transport carries calls to the router; nil is a transport of the pool's own.
	Transport http.RoundTripper
	// EngineTLS is how engines of https URLs are trusted; nil trusts the system's roots. The name that
	// is verified is the URL's host unless it says another.
	EngineTLS *tls.Config
	// EngineCAFile is to EngineTLS what CAFile is to TLS.
	EngineCAFile string
	// Dial opens connections to engines; nil dials as the net package does.
	Dial Dialer
	// DialTimeout bounds one connection attempt to an engine; 0 is 10 s.
	DialTimeout time.Duration
	// CallTimeout bounds one call to the router, beyond the time it is asked to wait; 0 is 15 s.
	CallTimeout time.Duration
	// RetryFor is how long a call to the router is begun again while its answers are lost; 0 is 60 s.
	// With CallTimeout, which the last of them may take, it must be less than half of the pool's
	// leases.retentionSeconds, after which the router forgets.
	RetryFor time.Duration
	// ReleaseGrace is how long a release may go on after the caller's context has ended; 0 is 10 s.
	ReleaseGrace time.Duration
	// Attempts is how many requests Generate may make while each ends NotSent; 0 is 5.
	Attempts int
	// MaxReplyBytes bounds an engine's reply; a longer one is cut and counts as Cancelled. 0 is 256 MiB.
	MaxReplyBytes int64
	// Random feeds request ids; nil is the system's source. It must be safe for concurrent use.
	Random io.Reader
	// Jitter gives numbers in [0,1) that spread repeated calls; nil is a random source. It must be
	// safe for concurrent use.
	Jitter func() float64
}

// ConfigError says which field of a configuration is at fault.
type ConfigError struct {
	// Field is the name of the field in its struct.
	Field string
	// Reason says what is wrong with it.
	Reason string
}

func (e *ConfigError) Error() string { return "client: " + e.Field + ": " + e.Reason }

// Validate returns a *ConfigError for the first field that is at fault.
func (c Config) Validate() error {
	if err := c.validateURL(); err != nil {
		return err
	}
	for _, number := range []struct {
		field string
		value int64
	}{
		{"DialTimeout", int64(c.DialTimeout)},
		{"CallTimeout", int64(c.CallTimeout)},
		{"RetryFor", int64(c.RetryFor)},
		{"ReleaseGrace", int64(c.ReleaseGrace)},
		{"Attempts", int64(c.Attempts)},
		{"MaxReplyBytes", c.MaxReplyBytes},
	} {
		if number.value < 0 {
			return &ConfigError{number.field, "must not be negative"}
		}
	}
	return nil
}

func (c Config) validateURL() error {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		return &ConfigError{"BaseURL", "is not a URL"}
	case u.Scheme != "http" && u.Scheme != "https":
		return &ConfigError{"BaseURL", "must begin with http:// or https://"}
	case u.Host == "" || u.User != nil || strings.ContainsAny(c.BaseURL, "?#"):
		return &ConfigError{"BaseURL", "must be a host and a path, without user, query and fragment"}
	}
	return nil
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	c.DialTimeout = or(c.DialTimeout, 10*time.Second)
	c.CallTimeout = or(c.CallTimeout, 15*time.Second)
	c.RetryFor = or(c.RetryFor, time.Minute)
	c.ReleaseGrace = or(c.ReleaseGrace, 10*time.Second)
	c.Attempts = or(c.Attempts, 5)
	c.MaxReplyBytes = or(c.MaxReplyBytes, 256<<20)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Jitter == nil {
		c.Jitter = mathrand.Float64
	}
	return c
}

// or returns value, or instead where value is zero.
func or[T comparable](value, instead T) T {
	var zero T
	if value == zero {
		return instead
	}
	return value
}

// Pool leases from one pool. It is safe for concurrent use.
type Pool struct {
	config Config
	router *http.Client
	idle   func()
	// engines are the authorities of EngineCAFile; nil without one.
	engines *authorities
}

// New returns a client of the pool that config names. The caller owns it and may Close it. It fails with a
// *ConfigError.
func New(config Config) (*Pool, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	p := &Pool{config: config.withDefaults(), idle: func() {}}
	trust, err := newAuthorities(config.CAFile)
	if err != nil {
		return nil, &ConfigError{"CAFile", err.Error()}
	}
	if p.engines, err = newAuthorities(config.EngineCAFile); err != nil {
		return nil, &ConfigError{"EngineCAFile", err.Error()}
	}
	transport := config.Transport
	if transport == nil {
		own := &line{trust: trust, make: p.config.transport}
		transport, p.idle = own, own.rest
	}
	p.router = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

// transport makes the connections to the router, under these authorities; nil: those of TLS.
func (c Config) transport(roots *x509.CertPool) *http.Transport {
	trust := c.TLS.Clone()
	if roots != nil {
		trust = or(trust, &tls.Config{MinVersion: tls.VersionTLS12})
		trust.RootCAs = roots
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, TLSClientConfig: trust,
	}
}

// Close lets go of connections that rest. Requests under way go on.
func (p *Pool) Close() { p.idle() }

// newID makes a request id that nobody else has.
func (p *Pool) newID() (string, error) {
	var raw [16]byte
	if _, err := io.ReadFull(p.config.Random, raw[:]); err != nil {
		return "", fmt.Errorf("make a request id: %w", err)
	}
	return fmt.Sprintf("r%x", raw), nil
}
