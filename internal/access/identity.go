package access

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Identity is who a token belongs to, as the API server says.
type Identity struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
	// Expires is when the token's own time is up; zero: it does not say.
	Expires time.Time
}

// verdict is what is known of a token.
type verdict struct {
	known  bool
	who    Identity
	digest [sha256.Size]byte // of all that the API server is told about the caller
}

// digestOf names an identity: two of one digest are the same in everything that rights hang on.
func digestOf(who Identity) [sha256.Size]byte {
	h := sha256.New()
	// %q keeps parts apart that hold whatever a name may hold; maps are printed in the order of their keys.
	_, _ = fmt.Fprintf(h, "%q %q %q %q", who.User, who.UID, who.Groups, who.Extra)
	return [sha256.Size]byte(h.Sum(nil))
}

// weight is how many bytes a verdict holds besides itself, a little more than less.
func (v verdict) weight() int {
	const header, pair = 16, 64 // of a string, and of an entry of a map
	total := len(v.who.User) + len(v.who.UID)
	add := func(list []string) {
		for _, text := range list {
			total += header + len(text)
		}
	}
	add(v.who.Groups)
	for name, values := range v.who.Extra {
		total += pair + len(name)
		add(values)
	}
	return total
}
