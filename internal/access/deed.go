package access

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Deed is what a caller wants to do: to the leases of a pool, or with a path that is no resource.
type Deed struct {
	Verb string
	// Namespace and Pool name the pool; empty with Path.
	Namespace, Pool string
	Path            string
}

// The longest names that Kubernetes has for namespaces and pools, and the resource for senders, in bytes.
// What is longer names nothing, so that nobody need be asked about it.
const (
	maxNamespace = 63
	maxPool      = 253
	maxSender    = 63
)

// named refuses a deed to what cannot be there. The refusal does not repeat the names.
func (d Deed) named() error {
	if len(d.Namespace) <= maxNamespace && len(d.Pool) <= maxPool {
		return nil
	}
	return &router.Refusal{
		Reason: router.ReasonSessionForbidden,
		Detail: fmt.Sprintf("no namespace has a name of more than %d bytes, and no pool one of more than %d", maxNamespace, maxPool),
	}
}

// knownSender refuses the name of a sender that no pool can have.
func knownSender(sender router.SenderName) error {
	if len(sender) <= maxSender {
		return nil
	}
	return &router.Refusal{
		Reason: router.ReasonSenderUnknown, Field: "sender",
		Detail: fmt.Sprintf("no sender has a name of more than %d bytes", maxSender),
	}
}

// digest names the question whether a caller may do the deed. It is all that is kept of the names, which
// are parts of a request that would otherwise be kept with them.
func (d Deed) digest(who [sha256.Size]byte) [sha256.Size]byte {
	const enough = 512 // for all but paths, so that it stays on the stack
	text := append(make([]byte, 0, enough), who[:]...)
	for _, part := range []string{d.Verb, d.Namespace, d.Pool, d.Path} {
		text = binary.AppendUvarint(text, uint64(len(part))) // keeps apart whatever names may hold
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}

func forbidden(user string, what Deed) *router.Refusal {
	detail := fmt.Sprintf("%q may not %s inferencepools/leases of group inference.berthmaster.io named %q in namespace %q", user, what.Verb, what.Pool, what.Namespace)
	if what.Path != "" {
		detail = fmt.Sprintf("%q may not %s the path %s", user, what.Verb, what.Path)
	}
	return &router.Refusal{Reason: router.ReasonSessionForbidden, Detail: detail}
}
