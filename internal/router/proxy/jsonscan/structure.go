package jsonscan

import "fmt"

// structure looks at one byte between values.
func (s *Scanner) structure(c byte) error {
	switch c {
	case ' ', '\t', '\n', '\r':
		return nil
	case '{', '[':
		return s.open(c)
	case '}', ']':
		return s.shut(c)
	case '"':
		return s.beginString()
	case ',', ':':
		return s.separate(c)
	default:
		return s.beginScalar(c)
	}
}

func (s *Scanner) unexpected(c byte) error {
	return fmt.Errorf("%w: unexpected %q at byte %d", ErrSyntax, c, s.off)
}

// begin notes that a value begins here, if one may.
func (s *Scanner) begin(k Kind, c byte) error {
	if s.path.n == 0 {
		if s.done != before {
			return s.unexpected(c)
		}
		s.done = inside
	} else {
		f := &s.path.frames[s.path.n-1]
		if !f.mayBegin() {
			return s.unexpected(c)
		}
		if f.count == 0 && f.kind == Array {
			f.first = k
		}
		f.count++
	}
	s.pending = Value{Kind: k, Start: s.off}
	return nil
}

func (f *frame) mayBegin() bool {
	if f.kind == Object {
		return f.place == wantValue
	}
	return f.place == wantFirst || f.place == wantNext
}

func (s *Scanner) open(c byte) error {
	kind := Object
	if c == '[' {
		kind = Array
	}
	if err := s.begin(kind, c); err != nil {
		return err
	}
	if s.path.n == maxDepth || s.visitor.Enter(&s.path) == Skip {
		s.deep = 1
		return nil
	}
	f := &s.path.frames[s.path.n]
	f.kind, f.place, f.key, f.start, f.count, f.first = kind, wantFirst, f.key[:0], s.off, 0, None
	s.path.n++
	return nil
}

// shut leaves the innermost object or array.
func (s *Scanner) shut(c byte) error {
	if s.path.n == 0 {
		return s.unexpected(c)
	}
	f := &s.path.frames[s.path.n-1]
	opened := byte('{')
	if f.kind == Array {
		opened = '['
	}
	if opened+2 != c || f.place != wantFirst && f.place != wantComma {
		return s.unexpected(c)
	}
	s.path.n--
	s.pending = Value{Kind: f.kind, Start: f.start, End: s.off + 1, Count: f.count, First: f.first}
	s.report()
	return nil
}

// report tells of the pending value, which has ended.
func (s *Scanner) report() {
	s.visitor.Visit(&s.path, s.pending)
	if s.path.n == 0 {
		s.done = after
		return
	}
	s.path.frames[s.path.n-1].place = wantComma
}

func (s *Scanner) separate(c byte) error {
	if s.path.n == 0 {
		return s.unexpected(c)
	}
	f := &s.path.frames[s.path.n-1]
	switch {
	case c == ':' && f.place == wantColon:
		f.place = wantValue
	case c == ',' && f.place == wantComma:
		f.place = wantNext
	default:
		return s.unexpected(c)
	}
	return nil
}

func (s *Scanner) beginString() error {
	s.raw, s.escapes, s.mode, s.capture = s.raw[:0], plain, inString, aValue
	if s.path.n > 0 {
		f := &s.path.frames[s.path.n-1]
		if f.kind == Object && (f.place == wantFirst || f.place == wantNext) {
			s.capture = aKey
			return nil
		}
	}
	return s.begin(String, '"')
}

// endString ends a key, a value, or a string inside something skipped.
func (s *Scanner) endString(end int64) error {
	switch s.capture {
	case nothing:
	case aKey:
		f := &s.path.frames[s.path.n-1]
		name, _ := unquoted(s.raw, s.escapes) // a name that cannot be read is none of those wanted
		f.key, f.place = append(f.key[:0], name...), wantColon
	case aValue:
		s.pending.End = end
		if s.pending.Complete = Cut; len(s.raw) <= MaxText {
			s.pending.Text, s.pending.Complete = unquoted(s.raw, s.escapes)
		} else {
			s.pending.Text = s.raw[:MaxText]
		}
		s.report()
	}
	return nil
}

func (s *Scanner) beginScalar(c byte) error {
	kind := Literal
	switch {
	case c == '-' || '0' <= c && c <= '9':
		kind = Number
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
	default:
		return s.unexpected(c)
	}
	if err := s.begin(kind, c); err != nil {
		return err
	}
	s.raw, s.capture, s.mode = s.raw[:0], aValue, inScalar
	s.keep([]byte{c})
	return nil
}

func (s *Scanner) endScalar() {
	s.mode = between
	s.pending.End, s.pending.Text = s.off, s.raw
	if len(s.raw) > MaxText {
		s.pending.Complete, s.pending.Text = Cut, s.raw[:MaxText]
	}
	s.report()
}
