package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxAnswer bounds an answer of the router, in bytes.
const maxAnswer = 1 << 20

// Waits between repetitions of a call whose answer was lost.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// call is one idempotent request to the router.
type call struct {
	method string
	path   string // below the pool's URL, already escaped
	body   any    // nil sends none
	// patience is how long the router may take beyond the usual, because it was asked to wait.
	patience time.Duration
	// sent is told just before each attempt.
	sent func(time.Time)
	// traced is told the trace context that the router answered with.
	traced func(string)
}

// repeat makes a call until it is answered or the context ends. It is begun again for up to RetryFor;
// what was begun by then may take its CallTimeout, since a call that is cut short says nothing about
// why the router does not answer. Answers that say that no leader could be asked count as none.
func (p *Pool) repeat(ctx context.Context, c call, into any) error {
	begin := p.config.RetryFor + c.patience
	last := time.Now().Add(begin)
	ctx, cancel := context.WithTimeoutCause(ctx, begin+p.config.CallTimeout, ErrUnanswered)
	defer cancel()
	wait := firstWait
	for {
		err := p.once(ctx, c, into)
		if err == nil || !unanswered(err) {
			return err
		}
		left := time.Until(last)
		if left <= 0 || !p.rest(ctx, min(max(wait, retryAfter(err)), left)) {
			return fmt.Errorf("%s %s: %w: %w", c.method, c.path, ErrUnanswered, distrust(err))
		}
		wait = min(2*wait, lastWait)
	}
}

// distrust says of a certificate that was not trusted what to do about it.
func distrust(err error) error {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return err
}

// rest waits for about d. It is false once ctx has ended.
func (p *Pool) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(time.Duration(float64(d) * (0.75 + p.config.Jitter()/2)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// unanswered reports whether err leaves open what the router makes of the call, in which case it
// may be repeated.
func unanswered(err error) bool {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		return !errors.Is(err, errBeforeSending)
	}
	if problem.known() {
		return errors.Is(problem, ErrNotLeader) || errors.Is(problem, ErrNoLeader)
	}
	return problem.Status >= 500 || problem.Status == http.StatusTooManyRequests
}

func retryAfter(err error) time.Duration {
	if problem, ok := errors.AsType[*Problem](err); ok {
		return problem.RetryAfter
	}
	return 0
}

// errBeforeSending is wrapped where a call could not even be built; repeating does not help.
var errBeforeSending = errors.New("cannot be sent")

// once makes one attempt of a call.
func (p *Pool) once(ctx context.Context, c call, into any) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.CallTimeout+c.patience)
	defer cancel()
	req, err := p.request(ctx, c)
	if err != nil {
		return fmt.Errorf("%s %s: %w: %w", c.method, c.path, errBeforeSending, err)
	}
	if c.sent != nil {
		c.sent(time.Now())
	}
	resp, err := p.router.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return c.read(resp, into)
}

// read takes the answer to a call, whatever it is. The body stays the caller's to close.
func (c *call) read(resp *http.Response, into any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return problemOf(resp, body)
	}
	if into == nil || len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if trace := resp.Header.Get("Traceresponse"); trace != "" && c.traced != nil {
		c.traced(trace)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", c.method, c.path, err)
	}
	return nil
}

func (p *Pool) request(ctx context.Context, c call) (*http.Request, error) {
	var body io.Reader
	if c.body != nil {
		encoded, err := json.Marshal(c.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, p.config.BaseURL+c.path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if trace := p.traceparent(ctx); trace != "" {
		req.Header.Set(traceHeader, trace)
	}
	if p.config.Token != nil {
		token, err := p.config.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// problemOf reads a refusal. What is no problem document, from a gateway in between for example,
// becomes a Problem without a reason.
func problemOf(resp *http.Response, body []byte) *Problem {
	problem := &Problem{}
	if json.Unmarshal(body, problem) != nil {
		problem = &Problem{Detail: oneLine(string(body))}
	}
	problem.Status = resp.StatusCode
	if after, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		problem.RetryAfter = time.Duration(after) * time.Second
	}
	return problem
}
