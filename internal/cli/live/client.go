package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// answerTime bounds one call.
const answerTime = 30 * time.Second

// largestAnswer bounds an answer, in bytes: a pool of several thousand backends fits.
const largestAnswer = 16 << 20

// Client reads one pool.
type Client struct {
	http *http.Client
	pool string
}

// New returns a client of the pool at the router whose base URL is given; calls go through transport,
// which carries the caller's credentials.
func New(base string, transport http.RoundTripper, namespace, name string) *Client {
	return &Client{
		pool: strings.TrimRight(base, "/") + "/v1alpha1/namespaces/" + url.PathEscape(namespace) + "/inferencepools/" + url.PathEscape(name),
		http: &http.Client{
			Transport:     transport,
			Timeout:       answerTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// URL is the pool's in the lease API.
func (c *Client) URL() string { return c.pool }

// Transport is what calls go through.
func (c *Client) Transport() http.RoundTripper { return c.http.Transport }

// Pool reads the live state of the pool. A refusal is a *Problem.
func (c *Client) Pool(ctx context.Context) (*Pool, error) {
	out := &Pool{}
	return out, c.get(ctx, "", out)
}

// Session reads where a session lives, and why.
func (c *Client) Session(ctx context.Context, id string) (*Session, error) {
	out := &Session{}
	return out, c.get(ctx, "/sessions/"+url.PathEscape(id), out)
}

// Filter narrows a listing of sessions.
type Filter struct {
	// Backend and Sender: only sessions at home there, or of that sender; empty: all.
	Backend, Sender string
	// Limit bounds the listing; 0: there is no bound.
	Limit int
}

// pageSize is the most that the router gives at once.
const pageSize = 1000

// Sessions lists the pool's sessions in the order of their ids, and says whether there are more than
// the limit.
func (c *Client) Sessions(ctx context.Context, f Filter) (found []SessionEntry, more bool, err error) {
	query := url.Values{}
	for name, value := range map[string]string{"backend": f.Backend, "sender": f.Sender} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for {
		size := pageSize
		if f.Limit > 0 {
			size = min(size, f.Limit-len(found))
		}
		query.Set("limit", strconv.Itoa(size))
		var page SessionPage
		if err := c.get(ctx, "/sessions?"+query.Encode(), &page); err != nil {
			return nil, false, err
		}
		found = append(found, page.Sessions...)
		if page.Next == "" || len(found) == f.Limit {
			return found, page.Next != "", nil
		}
		query.Set("after", page.Next)
	}
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.pool+path, nil)
	if err != nil {
		return fmt.Errorf("ask the router: %w", err)
	}
	reply, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the router: %w", err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, largestAnswer))
	if err != nil {
		return fmt.Errorf("read the router's answer: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return problemOf(reply.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the router's answer: %w", err)
	}
	return nil
}

// problemOf is a refusal; what is no problem document did not come from a router.
func problemOf(status int, body []byte) error {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Reason == "" {
		return fmt.Errorf("what answers is no Berthmaster router: %d %s", status, http.StatusText(status))
	}
	p.Status = status
	return p
}

// Refused reports whether err is the router's refusal for that reason.
func Refused(err error, reason string) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Reason == reason
}
