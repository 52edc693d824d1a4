package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// askers ask at once, so that one that waits for an answer which never comes is not the measure.
	askers = 4
	// pause is between two requests of one asker: far below any gap that is measured.
	pause = 10 * time.Millisecond
	// hang bounds one call.
	hang = 500 * time.Millisecond
	// enough grants under one term make sure that it is in use.
	enough = 50
)

// asking is clients that take leases, and give them back, all the time.
type asking struct {
	pool  string // URL
	calls http.Client
	end   context.CancelFunc
	work  sync.WaitGroup

	mu sync.Mutex
	// last is when a lease was granted last, and longest the longest time between two. Guarded by mu.
	last    time.Time
	longest time.Duration
	term    int64 // of the last grant; guarded by mu
	count   int   // of grants under term; guarded by mu
}

func newAsking(ctx context.Context, pool string) *asking {
	ctx, end := context.WithCancel(ctx)
	// Each call has a connection of its own, so that the address deals them out anew.
	a := &asking{pool: pool, calls: http.Client{Timeout: hang, Transport: &http.Transport{DisableKeepAlives: true}}, end: end}
	for i := range askers {
		a.work.Go(func() { a.ask(ctx, i) })
	}
	return a
}

func (a *asking) stop() {
	a.end()
	a.work.Wait()
}

// forget begins to measure anew.
func (a *asking) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.longest = 0
}

// gap is the longest time between two grants.
func (a *asking) gap() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.longest
}

// untilGrants waits for some grants under a term other than before, and returns it.
func (a *asking) untilGrants(ctx context.Context, before int64) (int64, error) {
	look := time.NewTicker(pause)
	defer look.Stop()
	for {
		a.mu.Lock()
		term, count := a.term, a.count
		a.mu.Unlock()
		if term != before && count >= enough {
			return term, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("no grants under a term after %d: %w", before, ctx.Err())
		}
	}
}

func (a *asking) ask(ctx context.Context, number int) {
	rest := time.NewTicker(pause)
	defer rest.Stop()
	for turn := 0; ; turn++ {
		a.one(ctx, fmt.Sprintf("asker-%d-%d-%d", number, time.Now().UnixNano(), turn), fmt.Sprintf("asker-%d", number))
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
	}
}

// one takes a lease, which is never used, and gives it back. A refusal is what the gap consists of.
func (a *asking) one(ctx context.Context, id, session string) {
	var granted struct {
		Term  int64  `json:"term"`
		Token string `json:"token"`
	}
	status, err := a.post(ctx, "/leases", map[string]any{
		"requestID": id, "sessionID": session, "sender": "train", "senderGeneration": 0, "epoch": 1,
	}, &granted)
	if err != nil || status != http.StatusCreated {
		return
	}
	a.granted(granted.Term, time.Now())
	// One that is not given back counts until it is lost, which changes nothing here.
	_, _ = a.post(ctx, "/leases/"+id+"/release", map[string]any{"token": granted.Token, "outcome": "NotSent"}, nil)
}

func (a *asking) granted(term int64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.last.IsZero() {
		a.longest = max(a.longest, now.Sub(a.last))
	}
	a.last = now
	if term != a.term {
		a.term, a.count = term, 0
	}
	a.count++
}

func (a *asking) post(ctx context.Context, path string, body, answer any) (int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, a.pool+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	reply, err := a.calls.Do(call)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	text, err = io.ReadAll(reply.Body)
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return reply.StatusCode, err
}
