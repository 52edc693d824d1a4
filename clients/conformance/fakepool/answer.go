package fakepool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// answer sends the usual answer, or what the script makes of it.
func (p *Pool) answer(w http.ResponseWriter, r *http.Request, c call, a conformance.Answer) {
	status, raw := compose(c, a)
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if a.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.RetryAfterSeconds))
	}
	switch {
	case a.Fault == conformance.FaultHang:
		<-r.Context().Done()
	case a.Fault != "":
		p.lose(w, a.Fault, status, raw)
	case status == http.StatusNoContent:
		w.WriteHeader(status)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(raw)
	}
}

// compose makes the answer that the script wants of the usual one.
func compose(c call, a conformance.Answer) (int, []byte) {
	status, body := c.status, map[string]any{}
	maps.Copy(body, c.body)
	if a.Status != 0 {
		status, body = a.Status, map[string]any{"status": a.Status, "detail": "as the scenario says"}
	}
	if a.Reason != "" {
		body["type"], body["title"], body["reason"] = "urn:berthmaster:problem:"+a.Reason, a.Reason, a.Reason
	}
	maps.Copy(body, a.Fields)
	if a.Raw != "" {
		return status, []byte(a.Raw)
	}
	raw, _ := json.Marshal(body) // it came from JSON
	return status, raw
}

// lose breaks the connection instead of, or in the middle of, an answer.
func (p *Pool) lose(w http.ResponseWriter, fault conformance.Fault, status int, raw []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if fault == conformance.FaultReset {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	var half bytes.Buffer
	fmt.Fprintf(&half, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", status, len(raw))
	half.Write(raw[:len(raw)/2])
	_, _ = conn.Write(half.Bytes())
}

// hold waits as a script says, first for the trace and then for a time. It fails if the client goes away meanwhile, or what is awaited does
// not come.
func (p *Pool) hold(ctx context.Context, seconds float64, until string) error {
	if until != "" {
		if err := p.trace.await(p.life, until); err != nil {
			return err
		}
	}
	if seconds <= 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closing:
		return net.ErrClosed
	}
}

// script finds what the scenario says about the next call of a kind; the zero Answer is beyond it.
func (p *Pool) script(kind string) conformance.Answer {
	n := p.seen.turn(kind)
	for _, a := range p.scenario.Router[kind] {
		if a.Times < 0 || n < max(a.Times, 1) {
			return a
		}
		n -= max(a.Times, 1)
	}
	return conformance.Answer{}
}
