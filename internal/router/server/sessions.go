package server

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

const (
	// defaultPage and largestPage are how many sessions a page has.
	defaultPage = 100
	largestPage = 1000
	// listingsPerPool bounds the listings under way at once: each looks at every session of the pool.
	listingsPerPool = 2
	// longestName bounds the names of backends and senders, as Kubernetes does.
	longestName = 253
)

// pageAnswer is one page of a pool's sessions.
type pageAnswer struct {
	Sessions []sessionEntry `json:"sessions"`
	// Next asks for the page that follows, as ?after=; absent on the last one.
	Next router.SessionID `json:"next,omitempty"`
}

// sessionEntry is one session of a page.
type sessionEntry struct {
	SessionID router.SessionID  `json:"sessionID"`
	Sender    router.SenderName `json:"sender"`
	// Backend is absent while the session has no home.
	Backend      *backendRef `json:"backend,omitempty"`
	ActiveLeases int64       `json:"activeLeases"`
	IdleSeconds  int64       `json:"idleSeconds"`
	Why          string      `json:"why"`
}

// listSessions is GET sessions.
func (s *Server) listSessions(w http.ResponseWriter, r *http.Request, c *call) {
	l, err := listingOf(r)
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
	leave, ok := s.listings.enter(c.pool)
	if !ok {
		s.refuse(w, &router.Refusal{
			Reason: router.ReasonContended, RetryAfter: time.Second, Detail: "enough listings of this pool are under way",
		})
		return
	}
	defer leave()
	page, more := c.table.Sessions(l, s.clock())
	out := pageAnswer{Sessions: make([]sessionEntry, 0, len(page))}
	for i := range page {
		out.Sessions = append(out.Sessions, entryOf(&page[i]))
	}
	if more {
		out.Next = page[len(page)-1].Session
	}
	s.answer(w, c.pool, out)
}

func entryOf(e *router.SessionEntry) sessionEntry {
	out := sessionEntry{
		SessionID: e.Session, Sender: e.Sender, ActiveLeases: e.Active, Why: e.Why,
		IdleSeconds: int64(math.Floor(e.Idle.Seconds())),
	}
	if e.Backend != "" {
		out.Backend = &backendRef{e.Backend, e.Incarnation}
	}
	return out
}

// listingOf reads ?after=&backend=&sender=&limit=.
func listingOf(r *http.Request) (router.Listing, error) {
	query := r.URL.Query()
	l := router.Listing{
		After: router.SessionID(query.Get("after")), Backend: router.BackendName(query.Get("backend")),
		Sender: router.SenderName(query.Get("sender")), Limit: defaultPage,
	}
	for name := range query {
		if err := checkListing(name, query.Get(name)); err != nil {
			return l, err
		}
	}
	if query.Has("limit") {
		l.Limit, _ = strconv.Atoi(query.Get("limit")) // it has been looked at
	}
	return l, nil
}

// checkListing looks at one member of the query.
func checkListing(name, value string) error {
	switch name {
	case "limit":
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > largestPage {
			return invalid(name, "limit must be a whole number between 1 and "+strconv.Itoa(largestPage))
		}
	case "after":
		if !router.ValidID(value) {
			return invalid(name, "after must be the next of the page before")
		}
	case "backend", "sender":
		if len(value) > longestName {
			return invalid(name, name+" is no name that the pool could have")
		}
	default:
		return invalid("query", "this call has after, backend, sender and limit only")
	}
	return nil
}
