package server

import (
	"encoding/json"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/router"
)

// The answers of the calls that every turn makes are written by hand: they are most of what a
// pool's clients ask for, and encoding/json takes more time for them than the router. A test
// holds each to what encoding/json makes of the struct beside it.

func appendLease(dst []byte, g *router.Grant, t *tokens) []byte {
	c := &g.Claim
	dst = appendMember(dst, `{"requestID":`, string(c.Request))
	dst = appendMember(dst, `,"backend":{"name":`, string(c.Backend))
	dst = appendMember(dst, `,"incarnation":`, string(c.Incarnation))
	dst = appendMember(dst, `,"url":`, g.URL)
	dst = appendMember(dst, `},"rid":`, string(c.RID))
	dst = appendMember(dst, `,"weightVersion":`, string(c.Version))
	dst = appendNumber(dst, `,"epoch":`, int64(c.Epoch))
	dst = appendNumber(dst, `,"term":`, int64(c.Term))
	dst = appendNumber(dst, `,"ttlSeconds":`, int64(g.TTL.Seconds()))
	dst = appendNumber(dst, `,"startSeconds":`, int64(g.StartWindow.Seconds()))
	dst = append(dst, `,"token":"`...)
	dst = t.append(dst, c)
	return append(dst, `"}`...)
}

func appendRenewal(dst []byte, id string, v *router.Renewal) []byte {
	p := &v.Pool
	dst = appendMember(dst, `{"requestID":`, id)
	dst = appendNumber(dst, `,"ttlSeconds":`, int64(v.TTL.Seconds()))
	dst = appendNumber(dst, `,"startSeconds":`, int64(v.StartWindow.Seconds()))
	dst = appendFlag(dst, `,"mixed":`, v.Mixed)
	dst = appendNumber(dst, `,"state":{"epoch":`, int64(p.Epoch))
	dst = appendNumber(dst, `,"term":`, int64(p.Term))
	dst = appendMember(dst, `,"publishedVersion":`, string(p.Published))
	dst = appendMember(dst, `,"leasing":`, string(p.Leasing))
	dst = appendMember(dst, `,"access":`, string(p.Access))
	dst = appendFlag(dst, `,"failed":`, p.Failed)
	return append(dst, `}}`...)
}

func appendRelease(dst []byte, id string, e *router.Ending) []byte {
	dst = appendMember(dst, `{"requestID":`, id)
	dst = appendMember(dst, `,"outcome":`, string(e.Outcome))
	dst = appendMember(dst, `,"fate":`, string(e.Fate))
	dst = appendFlag(dst, `,"mixed":`, e.Mixed)
	return append(dst, '}')
}

// appendMember writes what comes before a string, and the string.
func appendMember(dst []byte, before, value string) []byte {
	dst = append(dst, before...)
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(value) // a string has no form that it fails on
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, value...)
	return append(dst, '"')
}

func appendNumber(dst []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(dst, before...), n, 10)
}

func appendFlag(dst []byte, before string, v bool) []byte {
	return strconv.AppendBool(append(dst, before...), v)
}
