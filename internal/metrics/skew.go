package metrics

import (
	"math"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Skew is the coefficient of variation, of the whole population, of outstanding per capacity over the
// admissible backends: 0 while they are loaded alike, and where there are none or nothing runs.
func Skew(backends []router.BackendSnapshot) float64 {
	var loads []float64
	var sum float64
	for i := range backends {
		if b := &backends[i]; b.Admissible && b.Capacity > 0 {
			load := float64(b.Outstanding) / float64(b.Capacity)
			loads = append(loads, load)
			sum += load
		}
	}
	if sum == 0 {
		return 0
	}
	mean := sum / float64(len(loads))
	var squares float64
	for _, load := range loads {
		squares += (load - mean) * (load - mean)
	}
	return math.Sqrt(squares/float64(len(loads))) / mean
}
