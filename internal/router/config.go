package router

import (
	"fmt"
	"time"
)

// Policy says how a session without a home gets its backend.
type Policy string

// The placement policies of spec.routing.policy.
const (
	// LeastOutstanding takes the least (outstanding+executions)/capacity (R1).
	LeastOutstanding Policy = "LeastOutstanding"
	// LeastSessions takes the fewest resident sessions per capacity.
	LeastSessions Policy = "LeastSessions"
	// RoundRobin takes the least recently chosen.
	RoundRobin Policy = "RoundRobin"
	// ConsistentHash takes the highest rendezvous score among backends under a load bound.
	ConsistentHash Policy = "ConsistentHash"
)

// Ambiguity says what becomes of a pool when an ambiguous execution cannot be made certain.
type Ambiguity string

// The values of spec.leases.onAmbiguous.
const (
	// FailPool stops all grants until the epoch is raised.
	FailPool Ambiguity = "FailPool"
	// IsolateBackend keeps the incarnation without leases until the execution is gone.
	IsolateBackend Ambiguity = "IsolateBackend"
)

// Leasing says whether new leases are granted.
type Leasing string

// The values of spec.leasing.
const (
	// LeasingOpen grants.
	LeasingOpen Leasing = "Open"
	// LeasingHeld grants nothing; waiting clients wait.
	LeasingHeld Leasing = "Held"
)

// AfterPublish says what a newly published version does to the homes of sessions.
type AfterPublish string

// The values of spec.routing.affinity.afterPublish.
const (
	// KeepHomes leaves sessions where they are.
	KeepHomes AfterPublish = "Keep"
	// ResetHomes places each session anew at its next turn.
	ResetHomes AfterPublish = "Reset"
)

// AffinityMode says when a session with an admissible home may move.
type AffinityMode string

// The values of spec.routing.affinity.mode.
const (
	// Sticky never moves a session from an admissible home.
	Sticky AffinityMode = "Sticky"
	// Rebalance may move a session at a turn boundary to a backend that has served less.
	Rebalance AffinityMode = "Rebalance"
)

// Config is what a pool's owner asked of the router, in the router's words. The zero value
// of a field means what DefaultConfig gives only if the field's comment says so; Validate
// refuses the rest.
type Config struct {
	// Policy places sessions without a home; empty: LeastOutstanding.
	Policy Policy
	// GroupSlackPercent lets siblings of a group share a backend while its load is within
	// this many percent of the least loaded; 0: groups are not looked at.
	GroupSlackPercent int64
	// AdmissionPercent limits what is counted on the admissible backends to this many percent
	// of their capacity; 0: no limit.
	AdmissionPercent int64
	// Mode is the affinity mode; empty: Sticky.
	Mode AffinityMode
	// Moving is the rule of Rebalance; looked at in that mode only.
	Moving Moving
	// AfterPublish: empty: KeepHomes.
	AfterPublish AfterPublish
	// IdleTimeout forgets a session that long after its last lease ended.
	IdleTimeout time.Duration
	// MaxSessions caps the sessions kept; beyond it new ones are served without affinity.
	MaxSessions int
	// MaxRequests caps the request records kept; beyond it new ids are Contended.
	MaxRequests int
	// TTL is how long a lease lives without renewal.
	TTL time.Duration
	// StartWindow is how long after asking a client may write its request; at most TTL.
	StartWindow time.Duration
	// Retention keeps the record of an ended lease, counted from its end.
	Retention time.Duration
	// OnAmbiguous: empty: FailPool.
	OnAmbiguous Ambiguity
	// Certainty is how long an ambiguous execution may stay uncertain; 0: not at all.
	Certainty time.Duration
}

// Moving says when Rebalance moves a session from an admissible home, at a turn boundary.
type Moving struct {
	// CoolDown is the least time between two moves of a session.
	CoolDown time.Duration
	// GapTurns is by how many turns of the session, of its mean output, the home must be ahead of
	// the other backend in tokens served.
	GapTurns int64
}

// DefaultMoving is what did best in simulation; docs/decisions/0004 compares.
func DefaultMoving() Moving { return Moving{CoolDown: time.Minute, GapTurns: 20} }

// DefaultConfig returns the defaults of the resource (design: spec.routing, spec.leases).
func DefaultConfig() Config {
	return Config{
		Policy: LeastOutstanding, Mode: Sticky, Moving: DefaultMoving(), AfterPublish: KeepHomes, OnAmbiguous: FailPool,
		IdleTimeout: 2 * time.Hour, MaxSessions: 1_000_000, MaxRequests: 1_000_000,
		TTL: 2 * time.Minute, StartWindow: 30 * time.Second, Retention: 15 * time.Minute,
		Certainty: time.Minute,
	}
}

// Validate names the first field that cannot be used.
func (c Config) Validate() error {
	switch {
	case c.IdleTimeout <= 0:
		return fmt.Errorf("IdleTimeout %v: must be positive", c.IdleTimeout)
	case c.MaxSessions <= 0:
		return fmt.Errorf("MaxSessions %d: must be positive", c.MaxSessions)
	case c.MaxRequests <= 0:
		return fmt.Errorf("MaxRequests %d: must be positive", c.MaxRequests)
	case c.StartWindow <= 0:
		return fmt.Errorf("StartWindow %v: must be positive", c.StartWindow)
	case c.TTL < c.StartWindow:
		return fmt.Errorf("TTL %v: must be at least StartWindow %v", c.TTL, c.StartWindow)
	case c.Retention <= 0:
		return fmt.Errorf("Retention %v: must be positive", c.Retention)
	case c.Certainty != 0 && c.Certainty <= c.StartWindow:
		return fmt.Errorf("Certainty %v: must be 0 or above StartWindow %v", c.Certainty, c.StartWindow)
	}
	return c.validateShares()
}

func (c Config) validateShares() error {
	switch {
	case c.GroupSlackPercent < 0:
		return fmt.Errorf("GroupSlackPercent %d: must not be negative", c.GroupSlackPercent)
	case c.AdmissionPercent < 0:
		return fmt.Errorf("AdmissionPercent %d: must not be negative", c.AdmissionPercent)
	case c.Mode == Rebalance && (c.Moving.GapTurns < 0 || c.Moving.CoolDown < 0):
		return fmt.Errorf("Moving: gap of %d turns and cool-down %v must not be negative", c.Moving.GapTurns, c.Moving.CoolDown)
	}
	return nil
}
