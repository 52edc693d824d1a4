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

// client is one client of the pool that knows the protocol only as far as it likes.
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
