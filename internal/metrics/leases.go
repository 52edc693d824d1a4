package metrics

import (
	"github.com/berthmaster/berthmaster/internal/router"
)

// refusalReasons are the reasons that an acquire can be refused with.
func refusalReasons() []router.Reason {
	return []router.Reason{
		router.ReasonStaleEpoch, router.ReasonRequestConflict, router.ReasonLeaseEnded, router.ReasonExecutionLost, router.ReasonNoLeader,
		router.ReasonPoolFailed, router.ReasonSenderUnknown, router.ReasonStaleGeneration, router.ReasonSenderFenced,
		router.ReasonLeasingHeld, router.ReasonContended, router.ReasonNoBackend,
	}
}

func outcomes() []router.Outcome {
	return []router.Outcome{router.Succeeded, router.Aborted, router.NotSent, router.Rejected, router.Cancelled, router.Ambiguous}
}

func waitEnds() []router.WaitEnd {
	return []router.WaitEnd{router.WaitGranted, router.WaitRefused, router.WaitAbandoned}
}

// leases tells every label from the start, since a counter that begins above 0 has no rate.
func (s sheet) leases(key router.PoolKey, t *router.Totals) {
	ns, name := key.Namespace, key.Name
	s.put(grants, float64(t.Grants), ns, name)
	s.put(lost, float64(t.Lost), ns, name)
	s.put(dead, float64(t.Dead), ns, name)
	s.put(orphans, float64(t.Orphaned), ns, name)
	s.put(unattached, float64(t.WithoutAffinity), ns, name)
	s.put(moves, float64(t.Moves), ns, name)
	s.put(mismatches, float64(t.VersionMismatches), ns, name)
	s.put(tokens, float64(t.OutputTokens), ns, name)
	for _, outcome := range outcomes() {
		s.put(releases, float64(t.Released[outcome]), ns, name, string(outcome))
	}
	s.refusals(key, t.Refused)
	for _, end := range waitEnds() {
		s.waits(key, end, t.Waits[end])
	}
}

func (s sheet) refusals(key router.PoolKey, counted map[router.Reason]int64) {
	known := map[router.Reason]int64{}
	for _, reason := range refusalReasons() {
		known[reason] = 0
	}
	for reason, n := range counted {
		known[reason] = n
	}
	for reason, n := range known {
		s.put(refusals, float64(n), key.Namespace, key.Name, string(reason))
	}
}

func (s sheet) waits(key router.PoolKey, end router.WaitEnd, w router.Waits) {
	var bounds []float64
	for _, bound := range router.WaitBounds() {
		bounds = append(bounds, bound.Seconds())
	}
	counts := make([]uint64, len(w.Counts))
	for i, n := range w.Counts {
		counts[i] = uint64(n)
	}
	s.classes(waits, bounds, counts, w.Sum.Seconds(), key.Namespace, key.Name, string(end))
}
