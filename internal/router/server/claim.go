package server

import (
	"encoding/binary"

	"github.com/berthmaster/berthmaster/internal/router"
)

// appendClaim writes a claim in the order of its fields: strings as length and bytes, numbers
// as unsigned varints in their shortest form. None of the numbers is negative.
func appendClaim(dst []byte, c *router.Claim) []byte {
	dst = appendText(dst, string(c.Pool))
	dst = appendText(dst, string(c.Request))
	dst = appendText(dst, string(c.RID))
	dst = appendText(dst, string(c.Backend))
	dst = appendText(dst, string(c.Incarnation))
	dst = appendText(dst, string(c.Session))
	dst = appendText(dst, string(c.Sender))
	dst = binary.AppendUvarint(dst, uint64(c.Generation))
	dst = appendText(dst, string(c.Group))
	dst = binary.AppendUvarint(dst, uint64(c.Executions))
	dst = binary.AppendUvarint(dst, uint64(c.Epoch))
	dst = binary.AppendUvarint(dst, uint64(c.Term))
	return appendText(dst, string(c.Version))
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// readClaim is the inverse of appendClaim; it accepts nothing else. The claim's strings share
// one copy of raw.
func readClaim(raw []byte) (router.Claim, error) {
	r := claimReader{rest: string(raw)}
	c := router.Claim{
		Pool: router.PoolUID(r.text()), Request: router.RequestID(r.text()), RID: router.RID(r.text()),
		Backend: router.BackendName(r.text()), Incarnation: router.Incarnation(r.text()),
		Session: router.SessionID(r.text()), Sender: router.SenderName(r.text()), Generation: r.number(),
		Group: router.GroupID(r.text()), Executions: r.number(), Epoch: router.Epoch(r.number()),
		Term: router.Term(r.number()), Version: router.Version(r.text()),
	}
	if r.failed || r.rest != "" {
		return router.Claim{}, errToken
	}
	return c, nil
}

// claimReader takes fields off the front; after the first that is ill-formed it yields zeros.
type claimReader struct {
	rest   string
	failed bool
}

func (r *claimReader) text() string {
	n := r.number()
	if r.failed || n > int64(len(r.rest)) {
		r.failed = true
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// number reads a varint of the shortest form below 2^63, so that each number has one form.
func (r *claimReader) number() int64 {
	var v uint64
	for i := 0; i < len(r.rest) && i < 9; i++ {
		b := r.rest[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if b == 0 && i > 0 {
				break
			}
			r.rest = r.rest[i+1:]
			return int64(v)
		}
	}
	r.failed = true
	return 0
}
