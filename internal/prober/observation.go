package prober

import "time"

// Key names one target: an incarnation within a pool.
type Key struct {
	// Pool is the UID of the pool.
	Pool string
	// Incarnation is the name of the backend's life, unique within the pool.
	Incarnation string
}

// Verdict is what the prober makes of an engine.
type Verdict int

const (
	// Unknown holds until the first success, or until the failures before it are enough.
	Unknown Verdict = iota
	// Healthy engines answered their last probe, or failed too few since to matter.
	Healthy
	// Unhealthy engines spent their threshold or their budget.
	Unhealthy
	// SuspectedPaused engines are alive and do not generate, by nobody's fault that we know of.
	SuspectedPaused
	// Refused engines have nobody listening at their address.
	Refused
)

// String is the verdict's name, fit for a metric's label.
func (v Verdict) String() string {
	switch v {
	case Unknown:
		return "Unknown"
	case Healthy:
		return "Healthy"
	case Unhealthy:
		return "Unhealthy"
	case SuspectedPaused:
		return "SuspectedPaused"
	case Refused:
		return "Refused"
	}
	return "Invalid"
}

// Reason is why a verdict is what it is, as a constant fit for a condition.
type Reason string

const (
	// ReasonNotProbed surfaces when no probe has landed yet.
	ReasonNotProbed Reason = "NotProbed"
	// ReasonProbeSucceeded surfaces when the last probe succeeded.
	ReasonProbeSucceeded Reason = "ProbeSucceeded"
	// ReasonVersionUnread surfaces when the engine is healthy and does not tell its weight version.
	ReasonVersionUnread Reason = "WeightVersionUnread"
	// ReasonProbeFailed surfaces when the last probe failed, and too few did for more.
	ReasonProbeFailed Reason = "ProbeFailed"
	// ReasonConnectionRefused surfaces when nobody listens at the engine's address.
	ReasonConnectionRefused Reason = "ConnectionRefused"
	// ReasonFailureThreshold surfaces when failureThreshold consecutive probes failed.
	ReasonFailureThreshold Reason = "FailureThresholdReached"
	// ReasonBudgetSpent surfaces when the engine kept failing for budgetSeconds.
	ReasonBudgetSpent Reason = "HealthBudgetSpent"
	// ReasonSuspectedPaused surfaces when /health fails while /server_info answers.
	ReasonSuspectedPaused Reason = "SuspectedPaused"
)

// Observation is what is known of a target after something happened to it.
type Observation struct {
	Key
	// Seq rises by at least one with each observation of the target.
	Seq uint64
	// Verdict is the health; only a Healthy engine should be given new leases.
	Verdict Verdict
	// Reason and Message say why. The message stays the same while the problem does.
	Reason  Reason
	Message string
	// Capacity is how many executions the engine says it runs at once, as last read; 0 is unknown.
	Capacity int64
	// EngineTotal is how many requests the engine's schedulers held when the last probe read it,
	// over all ranks; -1 if that probe could not. It is an estimate: see sglang.LoadSnapshot.
	EngineTotal int64
	// WeightVersion is the version as last read, empty if it never was.
	WeightVersion string
	// VersionConfirmed is true while the engine is healthy and WeightVersion was read since its
	// last outage, refused connection or pause.
	VersionConfirmed bool
	// At is when it was learnt, by this process's clock.
	At time.Time
	// Wanting is when the engine was last found to be anything but healthy, or was met refusing a connection,
	// by the same clock; the zero time: never. What was known of its weights before is doubtful.
	Wanting time.Time
}

// Sink receives what the prober learns.
type Sink interface {
	// Observe is called from probe loops and from Pause, Resume and Refused, in the order of Seq for each
	// target and never twice at a time for one target. It must not block, and must not call the
	// Prober. A caller of those three must hold no lock that Observe takes: when they return,
	// no earlier observation is still on its way.
	Observe(obs Observation)
}
