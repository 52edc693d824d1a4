package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
)

// maxDepth is the depth of the deepest values that are reported.
const maxDepth = 5

// window bounds how far one look into a string goes: a text full of escapes and free of quotes
// would otherwise be searched for its end again after each of them.
const window = 512

// ErrSyntax is returned for what is not one JSON document in UTF-8.
var ErrSyntax = errors.New("not a JSON document")

// Scanner reads one document. It is an io.Writer; Close says whether the document is complete.
type Scanner struct {
	visitor Visitor
	path    Path
	off     int64 // of the byte at hand
	mode    mode
	// deep counts the brackets open inside a value whose inside is not looked at.
	deep    int
	pending Value // begun and not ended
	raw     []byte
	capture capture
	escapes escapes
	done    progress
}

// mode is what the byte at hand belongs to.
type mode uint8

const (
	between mode = iota
	inString
	inEscape
	inScalar
)

// capture says what the text at hand is for.
type capture uint8

const (
	nothing capture = iota // it is inside something skipped
	aKey
	aValue
)

// progress is how much of the document has been seen.
type progress uint8

const (
	before progress = iota
	inside
	after
)

// New returns a scanner that tells the visitor what it meets.
func New(v Visitor) *Scanner { return &Scanner{visitor: v, raw: make([]byte, 0, firstText)} }

// firstText is room for most of the texts that matter, in bytes.
const firstText = 64

// Reset makes the scanner ready for another document.
func (s *Scanner) Reset() {
	s.path.n, s.off, s.mode, s.deep, s.done = 0, 0, between, 0, before
	s.pending, s.raw, s.capture, s.escapes = Value{}, s.raw[:0], nothing, plain
}

// Write takes the next piece. It fails with ErrSyntax, and is then of no further use.
func (s *Scanner) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		n, err := s.step(p[i:])
		if err != nil {
			return i, err
		}
		i += n
		s.off += int64(n)
	}
	return len(p), nil
}

// Close fails with ErrSyntax unless exactly one document has been written.
func (s *Scanner) Close() error {
	if s.mode == inScalar && s.path.n == 0 {
		s.endScalar()
	}
	if s.done != after {
		return fmt.Errorf("%w: it ends after %d bytes", ErrSyntax, s.off)
	}
	return nil
}

// Complete reports whether a whole document has been written.
func (s *Scanner) Complete() bool { return s.done == after && s.mode == between }

// step consumes at least one byte of p, or ends a scalar without consuming.
func (s *Scanner) step(p []byte) (int, error) {
	switch {
	case s.mode == inString:
		return s.inString(p)
	case s.mode == inEscape:
		s.keep(p[:1])
		s.mode = inString
		return 1, nil
	case s.mode == inScalar:
		return s.inScalar(p), nil
	case s.deep > 0:
		return s.skip(p), nil
	default:
		return 1, s.structure(p[0])
	}
}

// inString passes over a string up to its end or its next escape.
func (s *Scanner) inString(p []byte) (int, error) {
	p = p[:min(len(p), window)]
	end := bytes.IndexByte(p, '"')
	if end < 0 {
		end = len(p)
	}
	if esc := bytes.IndexByte(p[:end], '\\'); esc >= 0 {
		s.keep(p[:esc+1])
		s.mode, s.escapes = inEscape, escaped
		return esc + 1, nil
	}
	s.keep(p[:end])
	if end == len(p) {
		return end, nil
	}
	s.mode = between
	return end + 1, s.endString(s.off + int64(end) + 1)
}

// inScalar passes over a number or literal. What ends it is left to be looked at.
func (s *Scanner) inScalar(p []byte) int {
	n := 0
	for n < len(p) && !delimits(p[n]) {
		n++
	}
	s.keep(p[:n])
	if n < len(p) {
		s.off += int64(n)
		s.endScalar()
		s.off -= int64(n)
	}
	return n
}

// skip passes over the inside of a value that nobody looks into, up to the next string or its end.
func (s *Scanner) skip(p []byte) int {
	for i, c := range p {
		switch c {
		case '"':
			s.mode, s.capture = inString, nothing
			return i + 1
		case '{', '[':
			s.deep++
		case '}', ']':
			s.deep--
			if s.deep == 0 {
				s.pending.End = s.off + int64(i) + 1
				s.report()
				return i + 1
			}
		}
	}
	return len(p)
}

// keep keeps text, up to MaxText and one byte more by which it is known to be cut.
func (s *Scanner) keep(p []byte) {
	if s.capture == nothing {
		return
	}
	if room := MaxText + 1 - len(s.raw); len(p) > room {
		p = p[:room]
	}
	s.raw = append(s.raw, p...)
}

func delimits(c byte) bool {
	switch c {
	case ',', ']', '}', ':', '"', '[', '{', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}
