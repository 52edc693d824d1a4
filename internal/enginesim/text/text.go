// Package text invents what a simulated engine says. Everything follows from a seed, so that equal requests
// get equal tokens on every engine and in every run; nothing here means anything.
package text

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// Vocabulary is the number of token ids; ids run from FirstID to Vocabulary-1.
const Vocabulary = 32000

// The token ids with a meaning.
const (
	// EndID ends a sequence by itself.
	EndID = 2
	// FirstID is the smallest id of a word.
	FirstID = 3
)

// bytesPerToken is the usual rule of thumb for English text.
const bytesPerToken = 4

// Count is how many tokens a text is taken to have: one per four bytes, at least one.
func Count(s string) int { return max(1, (len(s)+bytesPerToken-1)/bytesPerToken) }

// Seed derives the seed of one sequence from the prompt's bytes, the request's sampling seed and the number
// of the sample.
func Seed(prompt []byte, sampling int64, sample int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(prompt) // a hash never fails
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(sampling)))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(sample)))
	return h.Sum64()
}

// mix spreads a counter over 64 bits; it is the finalizer of the splitmix64 generator.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Token is the i-th output token of the sequence, counted from 0.
func Token(seed uint64, i int) int {
	return FirstID + int(mix(seed+uint64(i))%(Vocabulary-FirstID))
}

// Tokens are the output tokens from index from up to but not including index to.
func Tokens(seed uint64, from, to int) []int {
	out := make([]int, 0, max(0, to-from))
	for i := from; i < to; i++ {
		out = append(out, Token(seed, i))
	}
	return out
}

// Logprob is the log-probability that token i is said to have had: between -2 and 0.
func Logprob(seed uint64, i int) float64 {
	return -2 * float64(mix(^seed+uint64(i))>>11) / (1 << 53)
}

// NaturalLength is where the sequence would end by itself: between 1 and twice the mean.
func NaturalLength(seed uint64, mean int) int {
	return 1 + int(mix(seed^0x5eed)%uint64(max(1, 2*mean-1)))
}

var (
	consonants = strings.Split("b d f g k l m n p r s t v z", " ")
	vowels     = strings.Split("a e i o u", " ")
)

// Word spells a token: a space and two or three syllables, distinct for distinct ids.
func Word(token int) string {
	var b strings.Builder
	b.WriteByte(' ')
	for rest, first := token, true; rest > 0 || first; first = false {
		b.WriteString(consonants[rest%len(consonants)])
		rest /= len(consonants)
		b.WriteString(vowels[rest%len(vowels)])
		rest /= len(vowels)
	}
	return b.String()
}

// Write appends the words of tokens from up to to.
func Write(b *strings.Builder, seed uint64, from, to int) {
	for i := from; i < to; i++ {
		b.WriteString(Word(Token(seed, i)))
	}
}
