package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Live is the part of the router's live view in which something may be counted.
type Live struct {
	Sessions int `json:"sessions"`
	Waiting  int `json:"waiting"`
	Backends []struct {
		Name        string `json:"name"`
		Incarnation string `json:"incarnation"`
		Outstanding int64  `json:"outstanding"`
		Held        int64  `json:"held"`
		Capacity    int64  `json:"capacity"`
		Sessions    int64  `json:"sessions"`
		UnknownLoad bool   `json:"unknownLoad"`
	} `json:"backends"`
	Senders []struct {
		Name    string `json:"name"`
		Counted int64  `json:"counted"`
	} `json:"senders"`
}

// PoolURL is the pool in the lease protocol.
func (s *System) PoolURL() string {
	namespace, name := s.PoolName()
	return fmt.Sprintf("%s/v1alpha1/namespaces/%s/inferencepools/%s", s.LeaseURL(), namespace, name)
}

// Live asks the router what it counts.
func (s *System) Live(ctx context.Context) (Live, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.PoolURL(), nil)
	if err != nil {
		return Live{}, err
	}
	return ReadLive(http.DefaultClient, req)
}

// ReadLive sends a request for the live view.
func ReadLive(by *http.Client, req *http.Request) (Live, error) {
	var live Live
	reply, err := by.Do(req)
	if err != nil {
		return live, fmt.Errorf("live view: %w", err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return live, fmt.Errorf("live view: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return live, fmt.Errorf("live view: %s: %s", reply.Status, body)
	}
	if err := json.Unmarshal(body, &live); err != nil {
		return live, fmt.Errorf("live view: %w", err)
	}
	return live, nil
}

// UntilNothingCounted waits until every count of the router is zero.
func (s *System) UntilNothingCounted(ctx context.Context) error {
	return until(ctx, statusPatience, "all counts to be zero", func(ctx context.Context) error {
		live, err := s.Live(ctx)
		if err != nil {
			return err
		}
		return live.Counted()
	})
}

// UntilNothingKnownCounted is UntilNothingCounted after a take-over, when what earlier terms have left
// stays unknown until a drain or a fence asks.
func (s *System) UntilNothingKnownCounted(ctx context.Context) error {
	return until(ctx, statusPatience, "all known counts to be zero", func(ctx context.Context) error {
		live, err := s.Live(ctx)
		if err != nil {
			return err
		}
		live.Forget()
		return live.Counted()
	})
}

// Forget takes unknown load out of the view and says whether there was any.
func (l Live) Forget() bool {
	found := false
	for i := range l.Backends {
		found = found || l.Backends[i].UnknownLoad
		l.Backends[i].UnknownLoad = false
	}
	return found
}

// Counted is an error that says what is not zero.
func (l Live) Counted() error {
	var left []string
	note := func(what string, n int64) {
		if n != 0 {
			left = append(left, fmt.Sprintf("%s %d", what, n))
		}
	}
	note("sessions", int64(l.Sessions))
	note("waiting", int64(l.Waiting))
	for _, b := range l.Backends {
		note(b.Name+" outstanding", b.Outstanding)
		note(b.Name+" held", b.Held)
		note(b.Name+" sessions", b.Sessions)
		if b.UnknownLoad {
			note(b.Name+" unknown load", 1)
		}
	}
	for _, s := range l.Senders {
		note("sender "+s.Name, s.Counted)
	}
	if len(left) > 0 {
		return fmt.Errorf("still counted: %s", strings.Join(left, ", "))
	}
	return nil
}
