package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
)

// post is one request on its way to one engine.
type post struct {
	pool  *Pool
	lease *Lease
	body  []byte
	route string
	// header is the caller's own.
	header http.Header
	// wrote is called once the whole request has been written.
	wrote func()
	// each is given the events of a stream; nil if the caller does not want them.
	each func([]byte) error
}

// encode writes the caller's request without its rid, which the lease decides.
func encode(body map[string]any) ([]byte, error) {
	without := maps.Clone(body)
	if without == nil {
		without = map[string]any{}
	}
	delete(without, "rid")
	return json.Marshal(without)
}

// withRID adds the lease's rid to what encode wrote, without encoding tens of megabytes again.
func withRID(object []byte, rid string) []byte {
	head, _ := json.Marshal(map[string]string{"rid": rid}) // a map of strings can always be encoded
	head = head[:len(head)-1]
	if len(object) > len(`{}`) {
		head = append(head, ',')
	}
	return append(head, object[1:]...)
}

// send dials, makes sure that the request may be begun, writes it once, and reads the reply. It
// returns what to report, whatever happens.
func (p *post) send(ctx context.Context) verdict {
	req, err := p.request(ctx)
	if err != nil {
		return verdict{outcome: NotSent, err: err}
	}
	conn, err := p.dial(ctx, req.URL)
	if err != nil {
		return verdict{outcome: NotSent, err: fmt.Errorf("connect to %s: %w", req.URL.Host, err)}
	}
	defer func() { _ = conn.Close() }()
	if !p.lease.MayStart(time.Now()) {
		if err := p.lease.Renew(ctx, NotStarted); err != nil {
			return verdict{outcome: NotSent, err: err}
		}
	}
	return p.exchange(ctx, req, conn)
}

func (p *post) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.lease.Backend.URL+p.route, bytes.NewReader(p.body))
	if err != nil {
		return nil, err
	}
	if p.lease.Traceparent != "" {
		req.Header.Set(traceHeader, p.lease.Traceparent)
	}
	maps.Copy(req.Header, p.header)
	// An Idempotency-Key would allow proxies on the way to repeat the request.
	req.Header.Del("Idempotency-Key")
	req.Header.Del("X-Idempotency-Key")
	req.Header.Set("Content-Type", "application/json")
	if p.pool.config.APIKey == nil {
		return req, nil
	}
	key, err := p.pool.config.APIKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("api-key: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	return req, nil
}

// dial opens the connection that carries this request and no other. Over https it is handshaken
// here, so that whatever fails before the request is known to come before it.
func (p *post) dial(ctx context.Context, u *url.URL) (*oneWay, error) {
	ctx, cancel := context.WithTimeout(ctx, p.pool.config.DialTimeout)
	defer cancel()
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	raw, err := p.pool.config.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	conn := &oneWay{Conn: raw, mayStart: func() bool { return p.lease.MayStart(time.Now()) }, wrote: p.wrote}
	if u.Scheme != "https" {
		return conn, nil
	}
	trust, err := p.trust(u.Hostname())
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	secure := tls.Client(raw, trust)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	conn.Conn, conn.sealed = secure, true
	return conn, nil
}

// trust is how an engine is verified. HTTP/2 is not offered: one connection carries one request.
func (p *post) trust(host string) (*tls.Config, error) {
	config := or(p.pool.config.EngineTLS.Clone(), &tls.Config{MinVersion: tls.VersionTLS12})
	roots, err := p.pool.engines.now()
	if err != nil {
		return nil, err
	}
	if roots != nil {
		config.RootCAs = roots
	}
	config.ServerName = or(config.ServerName, host)
	config.NextProtos = []string{"http/1.1"}
	return config, nil
}

// exchange writes the request on conn and reads the reply.
func (p *post) exchange(ctx context.Context, req *http.Request, conn *oneWay) verdict {
	take := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				conn.complete()
			}
		},
		GotFirstResponseByte: conn.wrote,
	})
	transport := &http.Transport{
		DialContext: take, DialTLSContext: take, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: 1 << 20,
	}
	resp, err := transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return p.broken(ctx, conn, err)
	}
	defer func() { _ = resp.Body.Close() }()
	judged, err := p.read(resp)
	if err != nil {
		return p.broken(ctx, conn, err)
	}
	return judged
}

// broken says what to make of a request that got no complete reply.
func (p *post) broken(ctx context.Context, conn *oneWay, err error) verdict {
	switch {
	case !conn.begun.Load():
		return verdict{outcome: NotSent, err: err}
	case ctx.Err() != nil:
		return verdict{outcome: Cancelled, err: context.Cause(ctx)}
	case errors.Is(err, errCut):
		return verdict{outcome: Cancelled, err: err}
	}
	return verdict{outcome: Ambiguous, err: err}
}

// errCut is wrapped where this client stopped reading a reply of its own accord.
var errCut = errors.New("the reply was cut by the client")

// read takes the reply to its end.
func (p *post) read(resp *http.Response) (verdict, error) {
	bounded := &limited{from: resp.Body, left: p.pool.config.MaxReplyBytes}
	if resp.StatusCode == http.StatusOK && isStream(resp.Header) {
		return readStream(bounded, p.each)
	}
	body, err := io.ReadAll(bounded)
	if err != nil {
		return verdict{}, err
	}
	return judge(resp.StatusCode, body), nil
}

// limited fails, rather than ends, once more than left bytes have been read.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.from.Read(b)
	l.left -= int64(n)
	if l.left < 0 {
		return n, fmt.Errorf("%w: it is longer than MaxReplyBytes", errCut)
	}
	return n, err
}
