package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/berthmaster/berthmaster/internal/router"
)

const (
	// minKeyBytes is the least that a token key may have: the size of the MAC.
	minKeyBytes = sha256.Size
	// maxTokenChars bounds a token before anything is decoded; the longest claim that a
	// grant can carry is well below.
	maxTokenChars = 4096
	// tokenForm is the first byte of every token. Another layout gets another number.
	tokenForm = 1
	// keyIDBytes names the key in a token, so that verification makes one MAC, not two.
	keyIDBytes = 4
	// tokenDomain keeps MACs made here from meaning anything elsewhere under the same key.
	tokenDomain = "berthmaster lease token\x00"
)

// errToken is every reason why a token is not ours; callers learn no more than that.
var errToken = errors.New("not a token of this router")

// Keys are the secrets that lease tokens are made and verified with. All replicas share them.
//
// To rotate without refusing a token in use, take three steps, and wait before each until every
// replica has the keys of the one before: set the new key as Previous, so that all know it before
// anybody uses it; swap the two; once the longest lease made under the old key has ended, remove it.
type Keys struct {
	// Current makes tokens and verifies them: 32 bytes or more.
	Current []byte
	// Previous only verifies: the key before or the one to come. Empty: there is none.
	Previous []byte
}

// Validate names the key that is too short.
func (k Keys) Validate() error {
	switch {
	case len(k.Current) < minKeyBytes:
		return fmt.Errorf("Keys.Current: %d bytes, must be %d or more", len(k.Current), minKeyBytes)
	case len(k.Previous) > 0 && len(k.Previous) < minKeyBytes:
		return fmt.Errorf("Keys.Previous: %d bytes, must be none or %d or more", len(k.Previous), minKeyBytes)
	}
	return nil
}

// tokens makes and verifies lease tokens. A token is the unpadded base64url form of
//
//	form (1 byte), key id (4), claim (see claim.go), HMAC-SHA256 of all that (32)
//
// It is immutable; a rotation replaces it whole.
type tokens struct {
	current  *macKey
	previous *macKey // nil: none
}

func newTokens(k Keys) (*tokens, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	t := &tokens{current: newMACKey(k.Current)}
	if len(k.Previous) > 0 {
		t.previous = newMACKey(k.Previous)
	}
	return t, nil
}

// append writes the token of a claim after dst.
func (t *tokens) append(dst []byte, c *router.Claim) []byte {
	m := t.current.take()
	defer t.current.back(m)
	raw := append(m.room[:0], tokenForm)
	raw = append(raw, t.current.id[:]...)
	raw = appendClaim(raw, c)
	return base64.RawURLEncoding.AppendEncode(dst, m.sum(raw, raw))
}

// verify returns the claim of a token made under the current or the previous key. Every claim
// has exactly one token per key: what is accepted encodes to itself.
func (t *tokens) verify(token []byte) (router.Claim, error) {
	if len(token) > maxTokenChars {
		return router.Claim{}, errToken
	}
	m := t.current.take()
	defer t.current.back(m)
	raw, err := base64.RawURLEncoding.Strict().AppendDecode(m.room[:0], token)
	// The decoder skips line ends; a token that has some is longer than its bytes ask for.
	if err != nil || base64.RawURLEncoding.EncodedLen(len(raw)) != len(token) {
		return router.Claim{}, errToken
	}
	if len(raw) < 1+keyIDBytes+sha256.Size || raw[0] != tokenForm {
		return router.Claim{}, errToken
	}
	key := t.keyOf(raw[1 : 1+keyIDBytes])
	if key == nil {
		return router.Claim{}, errToken
	}
	signed, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if !key.signed(signed, mac) {
		return router.Claim{}, errToken
	}
	return readClaim(signed[1+keyIDBytes:])
}

func (t *tokens) keyOf(id []byte) *macKey {
	for _, k := range []*macKey{t.current, t.previous} {
		if k != nil && string(k.id[:]) == string(id) {
			return k
		}
	}
	return nil
}

// macKey is a key with its public name.
type macKey struct {
	id [keyIDBytes]byte
	// macs are pooled because keying a hash costs more than the MAC of a short claim.
	macs sync.Pool
}

// mac is a keyed hash, with room for a token and a sum.
type mac struct {
	hash   hash.Hash
	domain []byte
	room   [1024]byte
	want   [sha256.Size]byte
}

func newMACKey(secret []byte) *macKey {
	own := append([]byte(nil), secret...)
	k := &macKey{macs: sync.Pool{New: func() any { return &mac{hash: hmac.New(sha256.New, own), domain: []byte(tokenDomain)} }}}
	name := hmac.New(sha256.New, own)
	name.Write([]byte("berthmaster key id\x00")) // a MAC, so that the id tells nothing of the key
	copy(k.id[:], name.Sum(nil))
	return k
}

func (k *macKey) take() *mac  { return k.macs.Get().(*mac) }
func (k *macKey) back(m *mac) { k.macs.Put(m) }

// signed reports whether sum is the MAC of raw, in a time that does not depend on either.
func (k *macKey) signed(raw, sum []byte) bool {
	m := k.take()
	defer k.back(m)
	return subtle.ConstantTimeCompare(sum, m.sum(m.want[:0], raw)) == 1
}

// sum appends the MAC of raw to dst.
func (m *mac) sum(dst, raw []byte) []byte {
	m.hash.Reset()
	m.hash.Write(m.domain)
	m.hash.Write(raw)
	return m.hash.Sum(dst)
}
