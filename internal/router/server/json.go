package server

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berthmaster/berthmaster/internal/router"
)

// jsonReader reads values off the front of raw; after the first that is ill-formed it reads
// nothing more and keeps the error.
type jsonReader struct {
	raw []byte
	at  int
	// within and field name the member that is being read.
	within, field string
	err           *router.Refusal
}

func (r *jsonReader) problem() error {
	if r.err == nil {
		return nil // not r.err: a nil *Refusal is no nil error
	}
	return r.err
}

func (r *jsonReader) fail(field, detail string) {
	if r.err == nil {
		r.err = invalid(field, detail)
	}
}

// shownBytes is how much of an unknown member's name is given back.
const shownBytes = 64

// unknown says that no member has that name.
func (r *jsonReader) unknown(within string, name []byte) {
	if len(name) == 0 {
		r.fail("body", "a field without a name")
		return
	}
	shown := within + strings.ToValidUTF8(string(name[:min(len(name), shownBytes)]), "")
	r.fail(shown, "this call has no field "+shown)
}

// broken says that raw is not JSON.
func (r *jsonReader) broken() {
	r.fail("body", "the body is not a JSON object: byte "+strconv.Itoa(r.at)+" is not as JSON has it")
}

// wrong says that the member's value is of another kind.
func (r *jsonReader) wrong(kind string) {
	r.fail(r.within+r.field, r.within+r.field+" must be "+kind)
}

// peek is the next byte; 0 at the end, which no value begins with.
func (r *jsonReader) peek() byte {
	if r.at < len(r.raw) {
		return r.raw[r.at]
	}
	return 0
}

func (r *jsonReader) space() {
	for r.at < len(r.raw) {
		switch r.raw[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

func (r *jsonReader) expect(c byte) {
	if r.err == nil && r.peek() != c {
		r.broken()
		return
	}
	r.at++
}

// more stands before each element of what opens and closes with those bytes: it reads what is
// between elements and reports whether there is another one.
func (r *jsonReader) more(opens, closes byte, first bool) bool {
	if r.err != nil {
		return false
	}
	if first {
		r.expect(opens)
		r.space()
	}
	switch {
	case r.err != nil:
		return false
	case r.peek() == closes:
		r.at++
		return false
	case !first:
		r.expect(',')
		r.space()
	}
	return r.err == nil
}

// null reads a null, if one is next.
func (r *jsonReader) null() bool { return r.word("null") }

// word reads a literal, if it is next.
func (r *jsonReader) word(w string) bool {
	if end := r.at + len(w); r.err == nil && end <= len(r.raw) && string(r.raw[r.at:end]) == w {
		r.at = end
		return true
	}
	return false
}

// flag reads true or false.
func (r *jsonReader) flag() bool {
	if r.word("true") {
		return true
	}
	if !r.word("false") {
		r.wrong("true or false")
	}
	return false
}

// number reads an integer that fits into 64 bits.
func (r *jsonReader) number() int64 {
	begin := r.at
	if r.peek() == '-' {
		r.at++
	}
	digits := r.at
	for c := r.peek(); '0' <= c && c <= '9'; c = r.peek() {
		r.at++
	}
	n, err := strconv.ParseInt(string(r.raw[begin:r.at]), 10, 64)
	padded := r.at > digits+1 && r.raw[digits] == '0'
	if c := r.peek(); err != nil || padded || c == '.' || c == 'e' || c == 'E' {
		r.wrong("a whole number of 64 bits")
	}
	return n
}

// text reads a string, as a copy: nothing that is kept may pin the body it came in.
func (r *jsonReader) text() string {
	if r.err == nil && r.peek() != '"' {
		r.wrong("a string")
		return ""
	}
	return string(r.rawText())
}

// rawText reads a string, as a part of raw where it has no escapes.
func (r *jsonReader) rawText() []byte {
	if r.err != nil {
		return nil
	}
	r.expect('"')
	begin := r.at
	for r.err == nil {
		switch c := r.peek(); {
		case c == '"' && r.at < len(r.raw):
			r.at++
			return r.utf8(r.raw[begin : r.at-1])
		case c == '\\':
			return r.escaped(begin)
		case c < ' ': // the end of raw included
			r.broken()
		default:
			r.at++
		}
	}
	return nil
}

// utf8 refuses text that is none.
func (r *jsonReader) utf8(s []byte) []byte {
	if !utf8.Valid(s) {
		r.broken()
		return nil
	}
	return s
}

// escaped reads a string with escapes, which clients of this protocol have little reason to
// send, by the book.
func (r *jsonReader) escaped(begin int) []byte {
	for r.at < len(r.raw) && r.raw[r.at] != '"' {
		if r.raw[r.at] == '\\' {
			r.at++
		}
		r.at++
	}
	if r.at >= len(r.raw) {
		r.broken()
		return nil
	}
	r.at++
	var s string
	if quoted := r.utf8(r.raw[begin-1 : r.at]); quoted == nil || json.Unmarshal(quoted, &s) != nil {
		r.broken()
	}
	return []byte(s)
}
