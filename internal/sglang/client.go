package sglang

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Sizes up to which replies are read, in bytes.
const (
	smallReply = 64 << 10
	infoReply  = 4 << 20
)

// Keys are an engine's credentials. An empty key is not set.
type Keys struct {
	// API opens generation and information.
	API string
	// Admin opens the calls that change the engine, and those only. If it is empty, they take API.
	Admin string
}

// KeySource gives the keys to use for a call that is about to be made. It is called from many
// goroutines and must not block.
type KeySource func() Keys

// access is which key a route takes.
type access int

const (
	open access = iota
	normal
	admin
)

// Client calls one engine. It is safe for concurrent use and holds nothing that needs closing.
type Client struct {
	base BaseURL
	http *http.Client
	keys KeySource
}

// New returns a client of the engine at base, on the caller's transport. keys may be nil if the
// engine has none.
func New(base BaseURL, transport http.RoundTripper, keys KeySource) *Client {
	if keys == nil {
		keys = func() Keys { return Keys{} }
	}
	return &Client{
		base: base,
		keys: keys,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// BaseURL is the address the client calls.
func (c *Client) BaseURL() BaseURL { return c.base }

// call is one request: what to send and how much of the answer to read.
type call struct {
	method string
	route  string
	query  string // without the question mark
	body   any    // sent as JSON unless nil
	access access
	limit  int64
}

// do makes the call and returns the body of a 200. Any other status is a *StatusError.
func (c *Client) do(ctx context.Context, call call) ([]byte, error) {
	req, err := c.request(ctx, call)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.route, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := readBounded(resp.Body, call.limit)
	if resp.StatusCode != http.StatusOK {
		// A status speaks for itself, whatever became of its explanation.
		return nil, &StatusError{Route: call.route, Code: resp.StatusCode, Message: explanation(body)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.route, err)
	}
	return body, nil
}

// request builds the HTTP request. It carries no Idempotency-Key, so that the transport never
// repeats a POST of which a byte was written.
func (c *Client) request(ctx context.Context, call call) (*http.Request, error) {
	var body io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return nil, fmt.Errorf("%s: encode: %w", call.route, err)
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, call.method, c.base.join(call.route), body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.route, err)
	}
	req.URL.RawQuery = call.query
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key := c.key(call.access); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// key picks the credential of a route. Once an engine has an admin key its admin routes take no
// other, and its normal routes do not take that one.
func (c *Client) key(a access) string {
	if a == open {
		return ""
	}
	keys := c.keys()
	if a == admin && keys.Admin != "" {
		return keys.Admin
	}
	return keys.API
}

// readBounded reads at most limit bytes and fails with ErrReplyTooLarge if there are more.
func readBounded(from io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return body, err
	}
	if int64(len(body)) > limit {
		return body[:limit], ErrReplyTooLarge
	}
	return body, nil
}

// decode reads a JSON reply into what the route promises.
func decode(route string, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w: %w", route, ErrMalformed, err)
	}
	return nil
}

// get reads a JSON route, and the name it had in older engines if this one answers 404.
func (c *Client) get(ctx context.Context, route, older string, into any) error {
	body, err := c.do(ctx, call{method: http.MethodGet, route: route, access: normal, limit: infoReply})
	if absent(err) && older != "" {
		route = older
		body, err = c.do(ctx, call{method: http.MethodGet, route: route, access: normal, limit: infoReply})
	}
	if err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return fmt.Errorf("%s: %w: null", route, ErrMalformed)
	}
	return decode(route, body, into)
}
