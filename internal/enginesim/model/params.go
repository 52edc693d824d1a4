package model

import (
	"fmt"
	"time"
)

// Params describes one engine. Every zero field means the default named there; the defaults of the first six
// are those of a published mock worker of the same engine family.
type Params struct {
	// PrefillTokensPerSecond is how many prompt tokens are processed per second. Default 8000.
	PrefillTokensPerSecond int
	// ChunkTokens is the most prompt tokens in one prefill step. Default 2048.
	ChunkTokens int
	// DecodeBase is the part of a decode step that does not depend on the batch. Default 6 ms.
	DecodeBase time.Duration
	// DecodePerRequest is what each running request adds to a decode step. Default 350 us.
	DecodePerRequest time.Duration
	// MaxRunning is how many requests can run at once. Default 256.
	MaxRunning int
	// KVTokens is the size of the KV cache in tokens, rounded down to whole blocks. Default 524288.
	KVTokens int
	// BlockTokens is the unit in which the KV cache is given out. Default 16.
	BlockTokens int
	// ReserveTokens is the room, per request that already runs, that must be free before another is
	// admitted; more of it means fewer retractions and a smaller batch. Default 256, our assumption.
	ReserveTokens int
}

// retractSteps is the number of decode steps that must fit after a retraction, so that one retraction is not
// followed by the next a token later.
const retractSteps = 20

// WithDefaults returns p with every zero field replaced by its default.
func (p Params) WithDefaults() Params {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&p.PrefillTokensPerSecond, 8000)
	def(&p.ChunkTokens, 2048)
	def(&p.MaxRunning, 256)
	def(&p.KVTokens, 524288)
	def(&p.BlockTokens, 16)
	def(&p.ReserveTokens, 256)
	if p.DecodeBase == 0 {
		p.DecodeBase = 6 * time.Millisecond
	}
	if p.DecodePerRequest == 0 {
		p.DecodePerRequest = 350 * time.Microsecond
	}
	return p
}

// Scaled returns p, defaults filled in, for an engine that does the same work speed times as fast. Sizes stay.
func (p Params) Scaled(speed float64) Params {
	p = p.WithDefaults()
	p.PrefillTokensPerSecond = max(1, int(float64(p.PrefillTokensPerSecond)*speed))
	p.DecodeBase = max(1, time.Duration(float64(p.DecodeBase)/speed))
	p.DecodePerRequest = max(1, time.Duration(float64(p.DecodePerRequest)/speed))
	return p
}

// Validate names the first field that no engine could have. Zero fields are valid.
func (p Params) Validate() error {
	p = p.WithDefaults()
	ints := []struct {
		name  string
		value int
	}{
		{"PrefillTokensPerSecond", p.PrefillTokensPerSecond}, {"ChunkTokens", p.ChunkTokens},
		{"MaxRunning", p.MaxRunning}, {"KVTokens", p.KVTokens}, {"BlockTokens", p.BlockTokens},
		{"ReserveTokens", p.ReserveTokens}, {"DecodeBase", int(p.DecodeBase)}, {"DecodePerRequest", int(p.DecodePerRequest)},
	}
	for _, f := range ints {
		if f.value < 0 {
			return fmt.Errorf("%s is %d, it must not be negative", f.name, f.value)
		}
	}
	if p.KVTokens < p.BlockTokens {
		return fmt.Errorf("KVTokens is %d, it must hold at least one block of %d", p.KVTokens, p.BlockTokens)
	}
	return nil
}
