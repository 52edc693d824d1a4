package controller

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/rollout"
)

// The meaning of empty fields of spec.weights, as their comments in api/v1alpha1 state it.
const (
	defaultMinReadyPercent = 90
	defaultPinDeadline     = 600 * time.Second
)

// askOf is what spec.weights asks, with the facts that it is asked under.
func askOf(spec *v1alpha1.InferencePoolSpec, facts *v1alpha1.WeightsStatus, told rollout.Leases, members int) rollout.Ask {
	asked := spec.Weights
	ask := rollout.Ask{
		Target: rollout.Version(asked.Version), Published: rollout.Version(facts.Published), Told: told,
		Source: rollout.External, Strategy: rollout.AllAtOnce, Clearing: rollout.ClearDrain,
		Verification: rollout.VerifyEngine, Stamping: rollout.StampDisabled, OnFailure: rollout.Hold,
		MaxUnavailable: countOf(asked.MaxUnavailable, members), MinReadyPercent: defaultMinReadyPercent,
		Deadline: seconds(asked.DeadlineSeconds), PinDeadline: defaultPinDeadline,
	}
	if facts.StartTime != nil {
		ask.Start = facts.StartTime.Time
	}
	if facts.PublishedTime != nil {
		ask.PublishedAt = facts.PublishedTime.Time
	}
	override(&ask.Source, rollout.Source(asked.Source))
	override(&ask.Strategy, rollout.Strategy(asked.Strategy))
	override(&ask.Clearing, rollout.Clearing(asked.Clearing))
	override(&ask.Verification, rollout.Verification(asked.Verification))
	override(&ask.Stamping, rollout.Stamping(asked.StampEngines))
	override(&ask.OnFailure, rollout.OnFailure(asked.OnFailure))
	override(&ask.MinReadyPercent, int(asked.MinReadyPercent))
	override(&ask.PinDeadline, seconds(asked.PinDeadlineSeconds))
	if pauseOf(spec.EngineMode).asked() {
		ask.Engines = rollout.EnginesPaused
	}
	return ask
}

// countOf is a number or a percentage of the members, rounded down, and at least one.
func countOf(of *intstr.IntOrString, members int) int {
	if of == nil {
		return 1
	}
	if of.Type == intstr.Int {
		return int(of.IntVal)
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(of.StrVal, "%"))
	if err != nil {
		return 1 // the API server lets no other through
	}
	return max(1, members*percent/100)
}

// pathOf is where the weights of a version are: those that the spec names, or those that the pool had.
func pathOf(version rollout.Version, spec *v1alpha1.WeightsSpec, facts *v1alpha1.WeightsStatus) string {
	if version == rollout.Version(spec.Version) {
		return spec.Path
	}
	return facts.PublishedPath
}
