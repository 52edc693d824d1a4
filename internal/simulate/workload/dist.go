package workload

import (
	"errors"
	"fmt"
	"math"
)

// Quantile is one published point of a distribution: the share At of all values is at most
// Value.
type Quantile struct {
	At    float64
	Value float64
}

// Quantiles is a distribution known by some of its quantiles, from At 0 to At 1, both in
// ascending order. Between two points it is a straight line, which adds the least that was
// not published.
type Quantiles []Quantile

// Validate says what is wrong with the points.
func (q Quantiles) Validate() error {
	if len(q) < 2 || q[0].At != 0 || q[len(q)-1].At != 1 {
		return errors.New("quantiles must reach from 0 to 1")
	}
	for i := 1; i < len(q); i++ {
		if !(q[i].At > q[i-1].At) || !(q[i].Value >= q[i-1].Value) {
			return fmt.Errorf("quantile %v: %v does not ascend from %v: %v", q[i].At, q[i].Value, q[i-1].At, q[i-1].Value)
		}
	}
	return nil
}

// Value returns the value below which the share u of all values lies; u is cut to 0..1.
func (q Quantiles) Value(u float64) float64 {
	for i := 1; i < len(q); i++ {
		if u <= q[i].At {
			share := max(0, (u-q[i-1].At)/(q[i].At-q[i-1].At))
			return q[i-1].Value + share*(q[i].Value-q[i-1].Value)
		}
	}
	return q[len(q)-1].Value
}

// Mean returns the distribution's mean.
func (q Quantiles) Mean() float64 {
	mean := 0.0
	for i := 1; i < len(q); i++ {
		mean += (q[i].At - q[i-1].At) * (q[i].Value + q[i-1].Value) / 2
	}
	return mean
}

// LogNormal is a heavy-tailed distribution of token counts, cut at both ends.
type LogNormal struct {
	// Median is the value that half of all values exceed, before the cut.
	Median float64
	// Sigma is the standard deviation of the logarithm. 0: every value is the median.
	Sigma float64
	// Min and Max bound the values. Max 0: no upper bound.
	Min, Max int
}

// Validate says what is wrong with the parameters.
func (l LogNormal) Validate() error {
	if !(l.Median > 0) || !(l.Sigma >= 0) || math.IsInf(l.Median, 0) || math.IsInf(l.Sigma, 0) {
		return fmt.Errorf("median %v must be positive and sigma %v not negative", l.Median, l.Sigma)
	}
	if l.Min < 1 || l.Max != 0 && l.Max < l.Min {
		return fmt.Errorf("bounds %d..%d must be ordered and at least 1", l.Min, l.Max)
	}
	return nil
}

// value returns the count at the standard normal score z, after multiplying the uncut
// value with factor.
func (l LogNormal) value(z, factor float64) int {
	upper := float64(math.MaxInt32)
	if l.Max != 0 {
		upper = float64(l.Max)
	}
	v := l.Median * factor * math.Exp(l.Sigma*z)
	return int(math.Round(min(max(v, float64(l.Min)), upper)))
}

// share turns a standard normal score into the share of values below it.
func share(z float64) float64 {
	return 0.5 * math.Erfc(-z/math.Sqrt2)
}
