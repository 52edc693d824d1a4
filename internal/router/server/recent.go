package server

import (
	"context"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Bounds of what is remembered of each pool for those who come later.
const (
	// recentHistory is how many happenings of a pool are kept.
	recentHistory = 200
	// recentPeriod is how often a pool is looked at that nobody watches. What comes and goes in between
	// is not remembered.
	recentPeriod = 2 * time.Second
	// mostBackends is of how many backends at once it is told what became of each.
	mostBackends = 12
)

// Types that only the recent history has: whoever watches sees them in the state.
const (
	// eventTermBegan: this router leads the pool, under a term of its own.
	eventTermBegan eventType = "TermBegan"
	// eventBackendJoined: an incarnation that was not there before.
	eventBackendJoined eventType = "BackendJoined"
	// eventBackendOpened and eventBackendClosed: it takes new sessions, or none, for a reason.
	eventBackendOpened eventType = "BackendOpened"
	eventBackendClosed eventType = "BackendClosed"
	// eventBackendsChanged: so many of them changed at once that only their number is told.
	eventBackendsChanged eventType = "BackendsChanged"
)

// happening is what happened to a pool, and when this router saw it.
type happening struct {
	Time time.Time `json:"time"`
	event
	// Reason is why a backend takes no new sessions.
	Reason string `json:"reason,omitempty"`
	// Count is how many backends changed, with BackendsChanged.
	Count int `json:"count,omitempty"`
}

type recentAnswer struct {
	Happenings []happening `json:"happenings"`
}

// happenedBetween tells what happened from one snapshot to the next, of which news is what watchers are
// told.
func happenedBetween(before, after *router.Snapshot, news []event, now time.Time) []happening {
	var out []happening
	base := event{Epoch: after.Epoch, Term: after.Term}
	if after.Term > before.Term {
		base.Type = eventTermBegan
		out = append(out, happening{Time: now, event: base})
	}
	for _, e := range news {
		out = append(out, happening{Time: now, event: e})
	}
	changed := backendsBetween(before, after, base, now)
	if len(changed) > mostBackends {
		base.Type = eventBackendsChanged
		changed = []happening{{Time: now, event: base, Count: len(changed)}}
	}
	return append(out, changed...)
}

// backendsBetween tells what became of each backend. Of a pool whose fleet was not known before it tells
// nothing: that all of them joined is no news.
func backendsBetween(before, after *router.Snapshot, base event, now time.Time) (out []happening) {
	was := make(map[router.Incarnation]*router.BackendSnapshot, len(before.Backends))
	for i := range before.Backends {
		was[before.Backends[i].Incarnation] = &before.Backends[i]
	}
	for i := range after.Backends {
		b := &after.Backends[i]
		h := happening{Time: now, event: base}
		h.Type, h.Reason = becameOf(was[b.Incarnation], b)
		if h.Type == "" || len(before.Backends) == 0 {
			continue
		}
		h.Backend = &backendRef{b.Name, b.Incarnation}
		out = append(out, h)
	}
	return out
}

// becameOf says what became of a backend; empty: nothing that is worth telling. Settling comes and goes
// by itself.
func becameOf(was, b *router.BackendSnapshot) (eventType, string) {
	const settling = "Settling"
	switch {
	case was == nil:
		return eventBackendJoined, ""
	case was.Reason == settling || b.Reason == settling:
		return "", ""
	case was.Reason == b.Reason && was.Drained == b.Drained:
		return "", ""
	case b.Admissible:
		return eventBackendOpened, ""
	case b.Drained && b.Reason == "Draining":
		return eventBackendClosed, "Drained"
	default:
		return eventBackendClosed, b.Reason
	}
}

// recent is GET recent: what happened lately, the oldest first. It is what this router saw, which began
// when it took over.
func (s *Server) recent(w http.ResponseWriter, _ *http.Request, c *call) {
	s.answer(w, c.pool, recentAnswer{Happenings: s.feeds.happened(c.table)})
}

// Chronicle remembers what happens to every pool, watched or not, until ctx ends. Without it only what
// happens while somebody watches is remembered.
func (s *Server) Chronicle(ctx context.Context) {
	tick := time.NewTicker(recentPeriod)
	defer tick.Stop()
	s.feeds.keepAll()
	for {
		select {
		case <-tick.C:
			s.feeds.glance(s.pools.All())
		case <-ctx.Done():
			return
		}
	}
}
