package proxy

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Handler is the proxy of all pools of this process, an http.Handler for the paths that Matches
// names. It sets the deadlines of reading and writing itself, in place of those of its server.
type Handler struct {
	cfg      Config
	routes   map[string]route
	prefixes *prefixes
	meter    *meter
	pieces   piecePool
	store    *store
	turn     atomic.Uint64
	// origins keeps pages of other origins from using a caller's browser.
	origins *http.CrossOriginProtection
}

// New makes a proxy. It fails if the configuration does not pass Validate.
func New(c Config) (*Handler, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	c = c.withDefaults()
	callers := anybody
	if c.Authorizer != nil {
		callers = judged
	}
	return &Handler{
		cfg: c, routes: withMethods(routes(), callers), prefixes: newPrefixes(c.Limits.Prefixes), meter: newMeter(), store: newStore(c.Limits), origins: http.NewCrossOriginProtection(),
	}, nil
}

// place is what a path names.
type place struct {
	pool   router.PoolKey
	sender router.SenderName
	engine string // the engine's own path
}

// Matches reports whether a path is the proxy's.
func Matches(path string) bool {
	_, ok := parse(path)
	return ok
}

// parse takes a path apart. Slashes in a row are one, as in base URLs that end in a slash.
func parse(path string) (place, bool) {
	const before = 7 // v1alpha1 namespaces {} inferencepools {} senders {}, then proxy
	parts := make([]string, 0, before+4)
	for path != "" {
		part, rest, _ := strings.Cut(path, "/")
		if part != "" {
			parts = append(parts, part)
		}
		path = rest
	}
	if len(parts) <= before || parts[0] != "v1alpha1" || parts[1] != "namespaces" || parts[3] != "inferencepools" ||
		parts[5] != "senders" || parts[before] != "proxy" {
		return place{}, false
	}
	return place{
		pool:   router.PoolKey{Namespace: parts[2], Name: parts[4]},
		sender: router.SenderName(parts[6]),
		engine: "/" + strings.Join(parts[before+1:], "/"),
	}, true
}

// call is one request to the proxy.
type call struct {
	place
	w       http.ResponseWriter
	r       *http.Request
	out     *http.ResponseController
	table   *router.Table
	route   route
	arrived time.Time
	// still says whether the caller has the rights that it came with; nil: nobody is asked.
	still func(context.Context) error
	meter *series
	sizes sizes
	// moveDeadline is when the deadline of writing is next moved.
	moveDeadline time.Time
}

// ServeHTTP does what the path's route asks.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.origins.Check(r); err != nil {
		refuse(w, &router.Refusal{Reason: router.ReasonSessionForbidden, Detail: "a page of another origin may not use this API"})
		return
	}
	at, ok := parse(r.URL.Path)
	if !ok {
		refuse(w, &router.Refusal{Reason: reasonNotFound, Detail: "the proxy has no such path"})
		return
	}
	// Before the pool is looked for, so that strangers do not learn which there are; and before a body
	// is read.
	still, err := h.admit(r, at)
	if err != nil {
		// net/http reads on in its body for a while; a stranger is not waited for that long.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangersTime))
		refuse(w, err)
		return
	}
	table, ok := h.cfg.Pools.Get(at.pool)
	if !ok {
		refuse(w, &router.Refusal{Reason: router.ReasonPoolNotFound, Detail: "inferencepools.inference.berthmaster.io " + at.pool.Namespace + "/" + at.pool.Name})
		return
	}
	c := &call{
		place: at, w: w, r: r, out: http.NewResponseController(w), table: table, route: h.routes[at.engine],
		arrived: h.cfg.Clock(), meter: h.meter.of(at.pool), still: still,
	}
	// Limits of the server are for calls that never wait. Here the client's silence has its own.
	_ = c.out.SetWriteDeadline(time.Time{})
	h.serve(c)
}

// strangersTime is how long somebody who may not call can take for the rest of the request.
const strangersTime = time.Second

func (h *Handler) admit(r *http.Request, at place) (still func(context.Context) error, err error) {
	if h.cfg.Authorizer == nil {
		return nil, nil
	}
	return h.cfg.Authorizer.Admit(r, at.pool, at.sender)
}

func (h *Handler) authorize(r *http.Request, at place) error {
	if h.cfg.Authorizer == nil {
		return nil
	}
	return h.cfg.Authorizer.Authorize(r, at.pool, at.sender)
}

func (h *Handler) serve(c *call) {
	if m := c.route.methods; m != nil && !slices.Contains(m, c.r.Method) {
		c.w.Header().Set("Allow", strings.Join(m, ", "))
		h.refuse(c, &router.Refusal{Reason: reasonMethodNotAllowed, Detail: c.engine + " is not called by " + c.r.Method})
		return
	}
	switch c.route.kind {
	case leased:
		h.generate(c)
	case informs:
		h.inform(c)
	case finishes:
		h.finish(c)
	case health:
		h.health(c)
	case controls:
		h.control(c)
	case unknownRoute:
		h.refuse(c, &router.Refusal{Reason: reasonNotFound, Detail: c.engine + " is none of the engine's calls that the proxy knows, and what it does not know it does not pass on"})
	}
}

// control refuses a call that changes engines, or sends it to all of them.
func (h *Handler) control(c *call) {
	if h.cfg.Settings(c.pool).Control == ControlFanOut {
		h.fanOut(c)
		return
	}
	h.refuse(c, &router.Refusal{Reason: router.ReasonSessionForbidden, Detail: c.engine + " changes engines, which is the operator's: " + c.route.instead})
}

// finish ends the session that the query, or the header, names.
func (h *Handler) finish(c *call) {
	named := c.r.URL.Query().Get("session_id")
	if named == "" {
		named = headerSession(c.r.Header)
	}
	if named == "" {
		h.refuse(c, &router.Refusal{Reason: router.ReasonInvalid, Field: "session_id", Detail: "name the session in the query: finish_session?session_id="})
		return
	}
	if err := c.table.EndSession(sessionID(named), c.sender, h.cfg.Clock()); err != nil {
		h.refuse(c, err)
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write([]byte(`{"success":true}` + "\n"))
	h.measure(c, labelFinished)
}
