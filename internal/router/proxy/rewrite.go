package proxy

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/berthmaster/berthmaster/internal/router"
)

// withRID is the body with the lease's rid in place of the client's, and its length. The body is
// read from the spool as it is sent.
func withRID(body *spool, f *fields, rid router.RID) (io.Reader, int64) {
	if f.route.rid == withoutRID {
		return splice(body, nil, "")
	}
	value := ridValue(f, rid)
	if len(f.rids) == 0 {
		member := `"rid":` + value
		if f.members > 0 {
			member += ","
		}
		return splice(body, []span{{f.open, f.open}}, member)
	}
	return splice(body, f.rids, value)
}

// ridValue names one rid, or for a list of prompts one for each: an engine refuses or misreads
// anything else, depending on its release. All of them begin with the lease's rid, by which the
// engine aborts.
func ridValue(f *fields, rid router.RID) string {
	if f.batch == onePrompt {
		return `"` + string(rid) + `"`
	}
	var out strings.Builder
	out.WriteByte('[')
	for i := range f.prompts {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + string(rid) + "_" + strconv.FormatInt(i, 10) + `"`)
	}
	out.WriteByte(']')
	return out.String()
}

// splice is the body with text in place of each of the spans.
func splice(body *spool, out []span, text string) (io.Reader, int64) {
	if body.file == nil {
		return spliceMemory(body, out, text)
	}
	var parts []io.Reader
	at, size := int64(0), body.size
	for _, s := range out {
		parts = append(parts, body.part(at, s.from), strings.NewReader(text))
		size += int64(len(text)) - (s.to - s.from)
		at = s.to
	}
	parts = append(parts, body.part(at, body.size))
	return io.MultiReader(parts...), size
}

// spliceMemory is splice for a body that is in memory whole, as most are.
func spliceMemory(body *spool, out []span, text string) (io.Reader, int64) {
	whole := make([]byte, 0, len(body.mem)+len(out)*len(text))
	at := int64(0)
	for _, s := range out {
		whole = append(append(whole, body.mem[at:s.from]...), text...)
		at = s.to
	}
	whole = append(whole, body.mem[at:]...)
	return bytes.NewReader(whole), int64(len(whole))
}
