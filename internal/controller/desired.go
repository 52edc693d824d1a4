package controller

import (
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// The meaning of empty fields of the spec, as their comments in api/v1alpha1 state it; what the
// router has a default for comes from router.DefaultConfig.
const (
	defaultEpoch            = 1
	defaultProbePeriod      = 5 * time.Second
	defaultProbeTimeout     = 25 * time.Second
	defaultFailureThreshold = 3
	defaultHealthBudget     = 60 * time.Second
)

// configOf is the spec in the router's words.
func configOf(spec *v1alpha1.InferencePoolSpec) router.Config {
	config := router.DefaultConfig()
	overrideRouting(&config, &spec.Routing)
	override(&config.TTL, seconds(spec.Leases.TTLSeconds))
	override(&config.StartWindow, seconds(spec.Leases.StartSeconds))
	override(&config.Retention, seconds(spec.Leases.RetentionSeconds))
	override(&config.MaxRequests, int(spec.Leases.MaxRequests))
	override(&config.OnAmbiguous, router.Ambiguity(spec.Leases.OnAmbiguous))
	if certainty := spec.Leases.CertaintySeconds; certainty != nil {
		config.Certainty = seconds(*certainty)
	}
	return config
}

func overrideRouting(config *router.Config, routing *v1alpha1.RoutingSpec) {
	override(&config.Policy, router.Policy(routing.Policy))
	override(&config.GroupSlackPercent, int64(routing.GroupSlackPercent))
	override(&config.AdmissionPercent, int64(routing.AdmissionPercent))
	override(&config.Mode, router.AffinityMode(routing.Affinity.Mode))
	override(&config.AfterPublish, router.AfterPublish(routing.Affinity.AfterPublish))
	override(&config.IdleTimeout, seconds(routing.Affinity.IdleTimeoutSeconds))
	override(&config.MaxSessions, int(routing.Affinity.MaxSessions))
	rebalance := &routing.Affinity.Rebalance
	override(&config.Moving.CoolDown, seconds(rebalance.CoolDownSeconds))
	override(&config.Moving.GapTurns, int64(rebalance.GapTurns))
}

// override replaces a default by a value that is not empty.
func override[T comparable](field *T, value T) {
	var empty T
	if value != empty {
		*field = value
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// leasingOf says whether the spec lets leases be granted.
func leasingOf(spec *v1alpha1.InferencePoolSpec) router.Leasing {
	if spec.Leasing == v1alpha1.LeasingHeld {
		return router.LeasingHeld
	}
	return router.LeasingOpen
}

// epochOf is the epoch that the spec asks for.
func epochOf(spec *v1alpha1.InferencePoolSpec) router.Epoch {
	if spec.Epoch == 0 {
		return defaultEpoch
	}
	return router.Epoch(spec.Epoch)
}

// startSecondsOf is how long a client may take to write its request, in seconds.
func startSecondsOf(spec *v1alpha1.InferencePoolSpec) int32 {
	return int32(configOf(spec).StartWindow / time.Second)
}

// sendersOf lists the senders of a pool in that namespace in the router's words.
func sendersOf(spec *v1alpha1.InferencePoolSpec, namespace string) []router.Sender {
	senders := make([]router.Sender, 0, len(spec.Senders))
	for _, entry := range spec.Senders {
		sender := router.Sender{
			Name: router.SenderName(entry.Name), Access: router.AccessOpen, Subjects: subjectsOf(entry.Subjects, namespace),
		}
		if entry.Access == v1alpha1.SenderFenced {
			sender.Access = router.AccessFenced
		}
		if entry.VersionPolicy == v1alpha1.VersionPinned {
			sender.Versions = router.VersionPinned
		}
		if entry.MinGeneration != nil {
			sender.MinGeneration = *entry.MinGeneration
		}
		senders = append(senders, sender)
	}
	return senders
}

// capacityOf is the capacity that the spec fixes and the one it falls back to, in executions; 0:
// it does not.
func capacityOf(spec *v1alpha1.BackendsSpec) (fixed, fallback int64) {
	if spec.Capacity.Source == v1alpha1.CapacityFixed {
		return int64(spec.Capacity.Value), 0
	}
	return 0, int64(spec.Capacity.Fallback)
}

// healthRule is spec.health without empty fields.
type healthRule struct {
	period, timeout, budget time.Duration
	threshold               int
}

func healthOf(spec *v1alpha1.HealthSpec) healthRule {
	rule := healthRule{
		period: defaultProbePeriod, timeout: defaultProbeTimeout,
		budget: defaultHealthBudget, threshold: defaultFailureThreshold,
	}
	override(&rule.period, seconds(spec.PeriodSeconds))
	override(&rule.timeout, seconds(spec.TimeoutSeconds))
	override(&rule.budget, seconds(spec.BudgetSeconds))
	override(&rule.threshold, int(spec.FailureThreshold))
	return rule
}
