package simulate

import (
	"math"
	"slices"
)

// Estimate is what several seeds say about one figure.
type Estimate struct {
	// Mean is over the seeds, and StdErr the standard error of that mean; 0 for one seed.
	Mean   float64 `json:"mean"`
	StdErr float64 `json:"stderr"`
}

// estimate summarises one value per seed.
func estimate(values []float64) Estimate {
	mean, variance := moments(values)
	n := float64(len(values))
	if n < 2 {
		return Estimate{Mean: mean}
	}
	return Estimate{Mean: mean, StdErr: math.Sqrt(variance / (n - 1))}
}

// variation is the coefficient of variation, the population's standard deviation over its
// mean; 0 when the mean is.
func variation(values []float64) float64 {
	mean, variance := moments(values)
	if mean == 0 {
		return 0
	}
	return math.Sqrt(variance) / mean
}

// moments returns mean and population variance, in two passes for accuracy.
func moments(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, variance
}

// percentile returns the smallest value that at least the share p of all values does not
// exceed. It sorts values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(p*float64(len(values)))) - 1
	return values[min(max(rank, 0), len(values)-1)]
}
