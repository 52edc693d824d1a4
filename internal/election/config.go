package election

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Config is how a replica takes part.
type Config struct {
	// Lock is where the leader is written down; its identity is Identity.String().
	Lock resourcelock.Interface
	// LeaseDuration is how long others wait before they take over, at least a second.
	LeaseDuration time.Duration
	// RenewDeadline is for how long a renewal is believed; shorter than LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two looks or renewals; shorter than RenewDeadline.
	RetryPeriod time.Duration
	// Authority is told of each successful renewal, before anybody can ask for the standing.
	Authority Authority
	// Clock is read around each write of the lock. Its times carry a monotonic reading.
	Clock func() time.Time
	// Log is told when a reign begins and ends, and who leads else; nil: nobody is.
	Log *slog.Logger
}

// Authority acts under the authority of this replica.
type Authority interface {
	// LeadUntil says that this replica has authority until then, in that reign. An until that has
	// passed says that it has none.
	LeadUntil(reign int64, until time.Time)
}

// Validate names the field that cannot be used.
func (c Config) Validate() error {
	switch {
	case c.Lock == nil || c.Authority == nil || c.Clock == nil:
		return errors.New("election: Lock, Authority and Clock are required")
	case c.RetryPeriod <= 0:
		return fmt.Errorf("election: the retry period is %s, must be above 0", c.RetryPeriod)
	case float64(c.RenewDeadline) <= jitter*float64(c.RetryPeriod):
		return fmt.Errorf("election: the renew deadline is %s, must be above %.1f times the retry period of %s", c.RenewDeadline, jitter, c.RetryPeriod)
	case c.LeaseDuration <= c.RenewDeadline || c.LeaseDuration < time.Second:
		return fmt.Errorf("election: the lease duration is %s, must be above the renew deadline of %s and a second or more", c.LeaseDuration, c.RenewDeadline)
	}
	return nil
}

// jitter is by how much the elector stretches a retry period at most.
const jitter = 1.2

// Identity is who a replica is, in the lock.
type Identity struct {
	// Name is for people: that of the pod.
	Name string
	// Address is the host:port at which the other replicas reach its lease API.
	Address string
	// Life tells two lives of one pod apart.
	Life string
}

// separator is in no name, address or life.
const separator = "_"

// String is how the identity stands in the lock.
func (i Identity) String() string {
	return strings.Join([]string{i.Name, i.Address, i.Life}, separator)
}

// ParseIdentity reads what String wrote.
func ParseIdentity(text string) (Identity, error) {
	parts := strings.Split(text, separator)
	if len(parts) != 3 || parts[1] == "" {
		return Identity{}, fmt.Errorf("the lock's holder %q is no replica of this manager", text)
	}
	return Identity{Name: parts[0], Address: parts[1], Life: parts[2]}, nil
}
