package proxy

import "bytes"

// events takes a stream of server-sent events apart, in pieces as they come. Only lines of data
// matter, and each is taken for an event of its own, which is how engines write them.
type events struct {
	at   linePart
	head []byte // of a line, or of data, until it is known what it is
}

// linePart is what of a line the byte at hand belongs to.
type linePart uint8

const (
	lineStart linePart = iota
	otherLine
	dataStart
	dataText // for the scanner
	dataMark // "[...": the mark that ends a stream, or nothing that matters
)

// lastMark is the data by which a stream of completions ends.
const lastMark = "[DONE]"

// feed takes the next piece and tells the reply of each event.
func (e *events) feed(p []byte, r *reply) {
	for len(p) > 0 {
		switch e.at {
		case lineStart:
			p = e.lineStart(p)
		case dataStart:
			p = e.dataStart(p, r)
		case otherLine, dataText, dataMark:
			p = e.inLine(p, r)
		}
	}
}

// lineStart gathers a line's first bytes until they are "data:" or cannot become it.
func (e *events) lineStart(p []byte) []byte {
	const data = "data:"
	for i, c := range p {
		if c == '\n' || c == '\r' {
			e.head = e.head[:0]
			continue
		}
		e.head = append(e.head, c)
		switch {
		case string(e.head) == data:
			e.at, e.head = dataStart, e.head[:0]
			return p[i+1:]
		case string(e.head) != data[:len(e.head)]:
			e.at, e.head = otherLine, e.head[:0]
			return p[i+1:]
		}
	}
	return nil
}

// dataStart passes over the space before data, and tells a document from a mark.
func (e *events) dataStart(p []byte, r *reply) []byte {
	for i, c := range p {
		switch c {
		case ' ', '\t':
		case '\n', '\r':
			e.at = lineStart
			return p[i+1:]
		case '[':
			e.at = dataMark
			return p[i:]
		default:
			e.at = dataText
			r.scanner.Reset()
			return p[i:]
		}
	}
	return nil
}

// inLine passes over the rest of a line.
func (e *events) inLine(p []byte, r *reply) []byte {
	end := bytes.IndexByte(p, '\n')
	text := p
	if end >= 0 {
		text = p[:end]
	}
	switch e.at {
	case dataText:
		if _, err := r.scanner.Write(text); err != nil {
			e.at = otherLine // not a document: nothing to learn
		}
	case dataMark:
		if len(e.head) < 2*len(lastMark) {
			e.head = append(e.head, text[:min(len(text), 2*len(lastMark))]...)
		}
	case lineStart, otherLine, dataStart:
	}
	if end < 0 {
		return nil
	}
	e.endLine(r)
	return p[end+1:]
}

func (e *events) endLine(r *reply) {
	switch e.at {
	case dataText:
		r.closeEvent()
	case dataMark:
		if string(bytes.TrimRight(e.head, "\r ")) == lastMark {
			r.state = complete
		}
	case lineStart, otherLine, dataStart:
	}
	e.at, e.head = lineStart, e.head[:0]
}
