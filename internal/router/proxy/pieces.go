package proxy

import (
	"strings"
	"sync"
)

// Sizes of the pieces in which bodies are passed on, in bytes. A stream of events keeps one for as
// long as it is open, and thousands are.
const (
	largePiece = 32 << 10
	smallPiece = 4 << 10
)

// piecePool lends buffers of the two sizes.
type piecePool struct{ large, small sync.Pool }

func (p *piecePool) get(size int) *[]byte {
	from := &p.large
	if size == smallPiece {
		from = &p.small
	}
	if b, ok := from.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, size)
	return &b
}

func (p *piecePool) put(b *[]byte) {
	if len(*b) == smallPiece {
		p.small.Put(b)
	} else {
		p.large.Put(b)
	}
}

// splitList takes a header's list apart.
func splitList(line string) []string {
	var out []string
	for part := range strings.SplitSeq(line, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
