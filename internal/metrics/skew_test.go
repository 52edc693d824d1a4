package metrics_test

import (
	"math"
	"testing"

	"github.com/berthmaster/berthmaster/internal/metrics"
	"github.com/berthmaster/berthmaster/internal/router"
)

func TestSkewIsTheCoefficientOfVariationOfLoadPerCapacity(t *testing.T) {
	at := func(outstanding, capacity int64) router.BackendSnapshot {
		return router.BackendSnapshot{Admissible: true, Outstanding: outstanding, Capacity: capacity}
	}
	closed := router.BackendSnapshot{Outstanding: 1000, Capacity: 8}
	for name, c := range map[string]struct {
		backends []router.BackendSnapshot
		want     float64
	}{
		"nothing runs":                          {[]router.BackendSnapshot{at(0, 8), at(0, 8)}, 0},
		"nobody is there":                       {nil, 0},
		"half of a capacity each is balance":    {[]router.BackendSnapshot{at(4, 8), at(32, 64)}, 0},
		"all on one of two":                     {[]router.BackendSnapshot{at(8, 8), at(0, 8)}, 1},
		"one and three quarters":                {[]router.BackendSnapshot{at(2, 8), at(6, 8)}, 0.5},
		"those that take nothing new are aside": {[]router.BackendSnapshot{at(4, 8), closed, at(4, 8)}, 0},
	} {
		if got := metrics.Skew(c.backends); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
