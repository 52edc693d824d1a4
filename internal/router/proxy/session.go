package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Headers by which clients and other routers name a session.
const (
	sessionHeader    = "X-Session-Id"
	routingKeyHeader = "X-Smg-Routing-Key"
)

func headerSession(head http.Header) string {
	if v := head.Get(sessionHeader); v != "" {
		return v
	}
	return head.Get(routingKeyHeader)
}

// sessionID is the router's name of a session. What a client calls it may not be an id of the
// lease protocol; it is then known by its digest, so that no two become one.
func sessionID(named string) router.SessionID {
	if router.ValidID(named) {
		return router.SessionID(named)
	}
	return digested("x-", named)
}

func digested(prefix, text string) router.SessionID {
	sum := sha256.Sum256([]byte(text))
	return router.SessionID(prefix + hex.EncodeToString(sum[:16]))
}

// affinity says whether the request belongs to a session that outlives it.
type affinity uint8

const (
	withoutAffinity affinity = iota
	withAffinity
)

// session finds the session of a request, in the order that the design gives; without one, what
// Settings.Keyless says; else one that is made for this request alone.
func (h *Handler) session(c *call, f *fields, body *spool) (router.SessionID, affinity) {
	for _, named := range []string{headerSession(c.r.Header), f.session, f.user} {
		if named != "" {
			return sessionID(named), withAffinity
		}
	}
	switch h.cfg.Settings(c.pool).Keyless {
	case KeylessAPIKey:
		// The digest alone is kept: a key is a secret even where it serves as a name.
		if key := strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer "); key != "" {
			return digested("key-", key), withAffinity
		}
	case KeylessPrefix:
		if id, ok := h.prefixes.session(c.place, f, body, h.freshSession); ok {
			return id, withAffinity
		}
	case KeylessNone:
	}
	return h.freshSession(), withoutAffinity
}

func (h *Handler) freshSession() router.SessionID { return router.SessionID("p-" + h.random()) }

// random is 32 hexadecimal digits.
func (h *Handler) random() string {
	var raw [16]byte
	_, _ = io.ReadFull(h.cfg.Random, raw[:]) // the system's never fails; a test's may as well repeat
	return hex.EncodeToString(raw[:])
}
