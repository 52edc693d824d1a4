package simulate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// ErrUnknownArm is returned for a policy name that no arm has.
var ErrUnknownArm = errors.New("unknown policy")

// Kind says what an arm stands for in a comparison.
type Kind int

// The kinds of arms.
const (
	// Baseline is what others do, decided by a few lines of this package.
	Baseline Kind = iota + 1
	// Shipped is decided by the real router.
	Shipped
	// Considered is a design that was weighed and is not shipped; it runs when named.
	Considered
	// Bound knows what no router can know.
	Bound
)

// Arm is one way to place sessions.
type Arm struct {
	// Name is the arm's name on the command line; Title says what it does, for tables.
	Name, Title string
	// Kind says what it stands for.
	Kind Kind

	// order, if not nil, decides in which order sessions open.
	order func(sessions []workload.Session, s Scenario) []workload.Session
	// open makes the arm's placer for one run.
	open func(situation) (placer, error)
}

// situation is what an arm is told before the first session.
type situation struct {
	fleet    []Backend
	sessions []workload.Session
	// random is the arm's own stream, drawn from the seed.
	random *rand.Rand
}

// placer decides where turns run. Sessions are named by their index, replicas by theirs.
// Calls come in order of time; each acquire of a session is followed by its release before
// the next.
type placer interface {
	// acquire says on which replica the session's next turn runs, and counts it there.
	acquire(session int, now time.Duration) (replica int, err error)
	// release uncounts the session's turn, which has ended.
	release(session int, now time.Duration) error
	// end forgets the session.
	end(session int, now time.Duration) error
}

// The names of the arms that others are compared with.
const (
	// Today is the arm that all durations are relative to.
	Today = "group-round-robin"
	// Promise is the shipped default.
	Promise = "r1"
	// Rebalanced is the shipped option that moves sessions.
	Rebalanced = "rebalance"
)

// Arms returns every arm, in the order of the tables.
func Arms() []Arm {
	return []Arm{
		{Name: Today, Title: "whole groups round-robin (today's practice)", Kind: Baseline, open: pickOnce(wholeGroups)},
		{Name: "session-round-robin", Title: "sessions round-robin", Kind: Baseline, open: pickOnce(roundRobin)},
		{Name: "random", Title: "random", Kind: Baseline, open: pickOnce(anyReplica)},
		{Name: "hash", Title: "consistent hash", Kind: Baseline, open: pickOnce(highestScore)},
		{Name: "bounded-hash", Title: "consistent hash, load bounded to 1.25 of the mean", Kind: Baseline, open: pickOnce(boundedScore)},
		{Name: "power-of-two", Title: "power of two choices", Kind: Baseline, open: pickOnce(betterOfTwo)},
		{Name: "least-sessions", Title: "fewest resident sessions per capacity", Kind: Baseline, open: pickOnce(fewestSessions)},
		{Name: "least-outstanding", Title: "least outstanding", Kind: Shipped,
			open: routed(router.LeastOutstanding, router.Sticky, equalCapacities)},
		{Name: Promise, Title: "least outstanding per capacity (R1 as shipped)", Kind: Shipped,
			open: routed(router.LeastOutstanding, router.Sticky, trueCapacities)},
		{Name: Rebalanced, Title: "R1 and Rebalance", Kind: Shipped,
			open: routed(router.LeastOutstanding, router.Rebalance, trueCapacities)},
		{Name: "longest-first", Title: "longest first, lengths known (bound)", Kind: Bound, order: longestFirst, open: pickOnce(leastKnownWork)},
	}
}

// FindArms returns the named arms, always with today's practice first. No name: all but the
// designs that are not shipped. It fails with ErrUnknownArm.
func FindArms(names []string) ([]Arm, error) {
	if len(names) == 0 {
		return Arms(), nil
	}
	known := make(map[string]Arm)
	var all []string
	for _, a := range append(Arms(), Designs()...) {
		known[a.Name] = a
		all = append(all, a.Name)
	}
	found := []Arm{known[Today]}
	for _, name := range names {
		a, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("%w %q: it is none of %s", ErrUnknownArm, name, strings.Join(all, ", "))
		}
		if name != Today {
			found = append(found, a)
		}
	}
	return found, nil
}
