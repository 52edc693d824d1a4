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

// The faults that are looked for. Known says what each means.
const (
	SelectorMatchesNothing Fault = "SelectorMatchesNothing"
	WrongPort              Fault = "WrongPort"
	EngineRefuses          Fault = "EngineRefuses"
	EngineUnhealthy        Fault = "EngineUnhealthy"
	AddressNotAllowed      Fault = "AddressNotAllowed"
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

// Kind is a fault and what it means.
type Kind struct {
	Fault Fault
	Means string
}

// Known lists every fault that is looked for.
func Known() []Kind {
	return []Kind{
		{SelectorMatchesNothing, "spec.backends.selector matches no pod of the namespace"},
		{WrongPort, "nobody listens on spec.backends.port, and the pod declares another"},
		{EngineRefuses, "nobody listens at a backend's address, or it makes no URL"},
		{AddressNotAllowed, "the manager's flags do not let it call an engine's address"},
		{EngineUnhealthy, "an engine fails its health probes"},
		{PausedByOthers, "somebody else paused an engine"},
		{StaleVersion, "an engine has other weights than the pool has published"},
		{KeyRejected, "an engine rejects the pool's key, or wants one"},
		{KeyMissing, "the Secret of the engines' keys, or its entry, is not there"},
		{EngineConflict, "two pools, or two backends of one, claim an engine"},
		{TwoLeaders, "two replicas of the manager may grant leases at once"},
		{TokenExpired, "your token has expired by the API server's clock"},
		{ClockSkewed, "this machine's clock is more than a minute from the API server's"},
		{RadixCacheOff, "an engine keeps no prefixes, so that sticky sessions are worthless"},
		{CapacityUnknown, "neither engine nor spec says how much a backend can run"},
		{KindShadowed, "the cluster has another resource called inferencepools"},
		{PodsNotReady, "a backend's pod is not Ready"},
		{ContainerNotFound, "the engine's container cannot be told among the pod's"},
		{BadAnnotation, "the capacity annotation of a pod is no whole number above 0"},
		{ManagerMissing, "no pod of the manager is ready"},
		{StatusBehind, "the status does not describe the spec as it is"},
		{RouterUnreachable, "the router does not answer, does not know the pool, or may not grant"},
		{CallerRefused, "the router refuses you"},
		{PoolFailed, "the pool has failed and grants nothing until its epoch is raised"},
		{BackendIsolated, "an execution on a backend could not be proven dead"},
		{PodLost, "a pod object went without a word about its containers"},
		{LoadUnknown, "executions of an earlier term or pool may run on a backend"},
		{DrainOfNobody, "spec.drain names a backend that the pool does not have"},
		{DrainLate, "a drain takes longer than its deadline"},
		{LeasingHeld, "leasing is held"},
		{SenderFenced, "a sender is fenced"},
		{EnginesPaused, "the engines are paused"},
		{NotLooked, "something could not be looked at"},
	}
}

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
