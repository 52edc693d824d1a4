package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// answer is what a call of ours was told.
type answer struct {
	status int
	body   []byte
	err    error
}

// post makes a call at one replica, on a connection of its own.
func post(ctx context.Context, url string, body any) answer {
	text, err := json.Marshal(body)
	if err != nil {
		return answer{err: err}
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return answer{err: err}
	}
	calls := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := calls.Do(call)
	if err != nil {
		return answer{err: err}
	}
	defer reply.Body.Close()
	text, err = io.ReadAll(reply.Body)
	return answer{reply.StatusCode, text, err}
}

// ask wants a lease of one replica, under a new id.
func (x *chaos) ask(ctx context.Context, base string) answer {
	x.asked.Add(1)
	id := fmt.Sprintf("ask-%d", x.asked.Load())
	return post(ctx, x.poolAt(base)+"/leases", map[string]any{
		"requestID": id, "sessionID": id, "sender": "train", "senderGeneration": 0, "epoch": 1,
	})
}

// poolAt is the pool's URL at a replica.
func (x *chaos) poolAt(base string) string {
	return base + strings.TrimPrefix(x.system.PoolURL(), x.system.LeaseURL())
}

// giveBack ends a lease that was never used, and its session.
func (x *chaos) giveBack(ctx context.Context, lease []byte) error {
	var held struct {
		RequestID string `json:"requestID"`
		Token     string `json:"token"`
	}
	if err := json.Unmarshal(lease, &held); err != nil {
		return err
	}
	return x.insist(ctx, "to give "+held.RequestID+" back", func(ctx context.Context) error {
		a := post(ctx, x.system.PoolURL()+"/leases/"+held.RequestID+"/release", map[string]any{"token": held.Token, "outcome": "NotSent"})
		if a.err == nil && a.status != http.StatusOK {
			a.err = fmt.Errorf("status %d: %s", a.status, a.body)
		}
		if a.err != nil {
			return a.err
		}
		return x.endSession(ctx, held.RequestID)
	})
}

func (x *chaos) endSession(ctx context.Context, id string) error {
	call, err := http.NewRequestWithContext(ctx, http.MethodDelete, x.system.PoolURL()+"/sessions/"+id+"?sender=train", nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(call)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode >= http.StatusBadRequest && reply.StatusCode != http.StatusNotFound {
		return fmt.Errorf("end of session %s: %s", id, reply.Status)
	}
	return nil
}

// look is the pause between two tries of insist.
const look = 100 * time.Millisecond

// insist tries until it works or ctx ends.
func (x *chaos) insist(ctx context.Context, what string, try func(context.Context) error) error {
	pause := time.NewTicker(look)
	defer pause.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting %s: %w; at last: %w", what, ctx.Err(), err)
		}
	}
}

var errGranted = errors.New("a lease is granted")

// untilNoLeader asks every replica until each says that nobody leads. A lease that is granted
// meanwhile is noted, and given back once somebody leads.
func (x *chaos) untilNoLeader(ctx context.Context) error {
	return x.insist(ctx, "for grants to stop", func(ctx context.Context) error {
		for _, r := range x.system.Replicas() {
			sent := time.Now()
			a := x.ask(ctx, "http://"+r.Leases)
			switch {
			case a.err != nil:
				return a.err
			case a.status == http.StatusCreated:
				return errors.Join(errGranted, x.note(a.body, sent))
			case !bytes.Contains(a.body, []byte(`"NoLeader"`)):
				return fmt.Errorf("%s answers %d: %s", r.Name(), a.status, a.body)
			}
		}
		return nil
	})
}

// note writes a lease down that was granted to a call of ours.
func (x *chaos) note(lease []byte, earliest time.Time) error {
	one, err := readGrant(lease)
	if err != nil {
		return err
	}
	one.earliest, one.latest = earliest, time.Now()
	x.grants.add(one)
	x.unused = append(x.unused, lease)
	return nil
}
