package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// client is one client of the pool.
type client struct {
	name   string
	base   string
	chance *rand.Rand
	counts tally
	http   *http.Client
	// next is the number of the next thing to do; false: nothing is left.
	next func() (int, bool)
}

func newClient(name, addr string, seed uint64) *client {
	return &client{
		name: name, base: "http://" + addr + poolPath, chance: rand.New(rand.NewPCG(1, seed)), counts: tally{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}},
	}
}

// answer is every field of an answer or problem that a client here looks at.
type answer struct {
	status  int
	Token   string `json:"token"`
	Reason  string `json:"reason"`
	Outcome string `json:"outcome"`
	Fate    string `json:"fate"`
}

// call makes one call. The error is the transport's, or what cut the call.
func (c *client) call(ctx context.Context, method, path string, body map[string]any) (answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a); err != nil {
			return a, fmt.Errorf("%s %s: %d with %q: %w", method, path, res.StatusCode, raw, err)
		}
	}
	return a, nil
}

// acquire is the body of an acquire.
func acquire(id, session string) map[string]any {
	return map[string]any{"requestID": id, "sessionID": session, "sender": "train", "senderGeneration": 0, "epoch": 1}
}

// soak takes leases, in sessions of up to twenty turns, and misbehaves now and then.
func (c *client) soak() error {
	for {
		session := ""
		for range 1 + c.chance.IntN(20) {
			n, more := c.next()
			if !more {
				return nil
			}
			if session == "" {
				session = fmt.Sprint(c.name, "-s", n)
			}
			if err := c.turn(n, session); err != nil {
				return err
			}
		}
		if c.chance.IntN(5) == 0 {
			continue // never ended: its idle time will
		}
		if a, err := c.call(context.Background(), http.MethodDelete, "/sessions/"+session+"?sender=train", nil); err != nil || a.status >= 300 {
			return fmt.Errorf("ending session %s: %+v, %w", session, a, err)
		}
	}
}

// turn takes one lease and ends it in one of the ways there are.
func (c *client) turn(n int, session string) error {
	id := fmt.Sprint(c.name, "-r", n)
	body := acquire(id, session)
	body["waitSeconds"] = 30
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.chance.IntN(50) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.chance.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	a, err := c.call(ctx, http.MethodPost, "/leases", body)
	switch {
	case ctx.Err() != nil:
		return c.cut(id, session)
	case err != nil:
		return err
	case a.status != http.StatusCreated:
		c.counts[a.Reason]++
		return allowed(a, "NoBackend", "Contended")
	}
	c.counts["leases"]++
	return c.finish(id, a.Token)
}

// cut is a client whose acquire was cut: it gives the id up, or is never heard of again.
func (c *client) cut(id, session string) error {
	c.counts["cut"]++
	if c.chance.IntN(2) == 0 {
		return nil
	}
	body := acquire(id, session)
	body["outcome"] = "NotSent"
	a, err := c.call(context.Background(), http.MethodPost, "/leases/"+id+"/release", body)
	if err != nil {
		return err
	}
	// It may have been lost meanwhile, which is one more thing a cut client is told.
	return allowed(a, "Contended", "LeaseEnded", "ExecutionLost", "RequestConflict")
}

// finish ends a lease: nearly always well.
func (c *client) finish(id, token string) error {
	path, outcome := "/leases/"+id, "Succeeded"
	switch n := c.chance.IntN(1000); {
	case n < 20:
		c.counts["abandoned"]++
		return nil
	case n < 50:
		outcome = "Cancelled"
	case n < 51:
		outcome = "Ambiguous"
	case n < 150:
		if err := c.renew(path, token); err != nil {
			return err
		}
	}
	c.counts[outcome]++
	return c.release(path, token, outcome)
}

// release reports how a lease ended. One that a slow machine brings too late is told so.
func (c *client) release(path, token, outcome string) error {
	a, err := c.call(context.Background(), http.MethodPost, path+"/release", map[string]any{"token": token, "outcome": outcome})
	switch {
	case err != nil:
		return err
	case a.Reason == "LeaseUnknown":
		c.counts["too late"]++
		return nil
	case outcome == "Ambiguous" && a.Fate != "Dead" && a.Fate != "Isolated":
		return fmt.Errorf("%s was ambiguous and is answered %+v", path, a)
	}
	return allowed(a)
}

// renew says that the request is written; the lease may have been lost before.
func (c *client) renew(path, token string) error {
	a, err := c.call(context.Background(), http.MethodPost, path+"/renew", map[string]any{"token": token, "started": true})
	if err != nil {
		return err
	}
	return allowed(a, "ExecutionLost", "LeaseUnknown")
}

// allowed is nil for a success, or a refusal for one of the reasons.
func allowed(a answer, reasons ...string) error {
	if a.status < 300 {
		return nil
	}
	for _, r := range reasons {
		if a.Reason == r {
			return nil
		}
	}
	return errors.New("answered " + a.Reason + " " + http.StatusText(a.status))
}
