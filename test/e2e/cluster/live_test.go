package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// live is the part of the router's live view in which something may be counted.
type live struct {
	Sessions int `json:"sessions"`
	Waiting  int `json:"waiting"`
	Backends []struct {
		Name        string `json:"name"`
		Outstanding int64  `json:"outstanding"`
		Held        int64  `json:"held"`
		Sessions    int64  `json:"sessions"`
		UnknownLoad bool   `json:"unknownLoad"`
	} `json:"backends"`
	Senders []struct {
		Name    string `json:"name"`
		Counted int64  `json:"counted"`
	} `json:"senders"`
}

// live asks the router what it counts.
func (c *caller) live(ctx context.Context) (*live, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	c.authorize(req)
	reply, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("live view: %s: %s", reply.Status, body)
	}
	l := &live{}
	return l, json.Unmarshal(body, l)
}

// forget takes unknown load out of the view and says whether there was any.
func (l *live) forget() bool {
	found := false
	for i := range l.Backends {
		found = found || l.Backends[i].UnknownLoad
		l.Backends[i].UnknownLoad = false
	}
	return found
}

// counted says what is not zero, or nothing.
func (l *live) counted() error {
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
