package doctor

import (
	"cmp"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

const (
	// Error: something does not work.
	Error Severity = "Error"
	// Warning: it works, and not as it should or not for long.
	Warning Severity = "Warning"
	// Notice: it is as somebody wanted it, and easily forgotten.
	Notice Severity = "Notice"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Fault is a stable word, for programs.
	Fault    Fault    `json:"fault"`
	Severity Severity `json:"severity"`
	// Subject is what it is about: a backend, the pool, the manager, the user.
	Subject string `json:"subject"`
	// What is wrong, and what to Do.
	What string `json:"what"`
	Do   string `json:"do"`
}

// Fault is a kind of fault.
type Fault string

// The faults that are looked for.
const (
	SelectorMatchesNothing Fault = "SelectorMatchesNothing"
	WrongPort              Fault = "WrongPort"
	EngineRefuses          Fault = "EngineRefuses"
	EngineUnhealthy        Fault = "EngineUnhealthy"
	PausedByOthers         Fault = "PausedByOthers"
	StaleVersion           Fault = "StaleVersion"
	KeyRejected            Fault = "KeyRejected"
	KeyMissing             Fault = "KeyMissing"
	EngineConflict         Fault = "EngineConflict"
	TwoLeaders             Fault = "TwoLeaders"
	TokenExpired           Fault = "TokenExpired"
	ClockSkewed            Fault = "ClockSkewed"
	RadixCacheOff          Fault = "RadixCacheOff"
	CapacityUnknown        Fault = "CapacityUnknown"
	KindShadowed           Fault = "KindShadowed"
	PodsNotReady           Fault = "PodsNotReady"
	ContainerNotFound      Fault = "ContainerNotFound"
	BadAnnotation          Fault = "BadAnnotation"
	ManagerMissing         Fault = "ManagerMissing"
	StatusBehind           Fault = "StatusBehind"
	RouterUnreachable      Fault = "RouterUnreachable"
	CallerRefused          Fault = "CallerRefused"
	PoolFailed             Fault = "PoolFailed"
	BackendIsolated        Fault = "BackendIsolated"
	PodLost                Fault = "PodLost"
	LoadUnknown            Fault = "LoadUnknown"
	DrainOfNobody          Fault = "DrainOfNobody"
	DrainLate              Fault = "DrainLate"
	LeasingHeld            Fault = "LeasingHeld"
	SenderFenced           Fault = "SenderFenced"
	EnginesPaused          Fault = "EnginesPaused"
	NotLooked              Fault = "NotLooked"
)

// check looks for one kind of fault, or a few that are seen by the same look.
type check func(w *World) []Finding

func checks() []check {
	return []check{
		checkManager, checkLeaders, checkRouter, checkCredentials, checkShadow,
		checkSelector, checkBackends, checkEngines, checkVersions, checkKeys,
		checkPool, checkUnlooked,
	}
}

// Judge lists what is wrong, the worst first.
func Judge(w *World) []Finding {
	var found []Finding
	for _, c := range checks() {
		found = append(found, c(w)...)
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Notice: 2}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return found
}

// one is a list of one finding.
func one(f Finding) []Finding { return []Finding{f} }
