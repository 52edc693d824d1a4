package simulate

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestEstimateIsTheTextbookStandardError(t *testing.T) {
	got := estimate([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if want := 2 / math.Sqrt(7); got.Mean != 5 || math.Abs(got.StdErr-want) > 1e-12 {
		t.Errorf("estimate %+v, want 5 ± %v", got, want)
	}
	if got := estimate([]float64{3}); got != (Estimate{Mean: 3}) {
		t.Errorf("estimate of one value is %+v", got)
	}
}

func TestVariationIsScaleFreeAndZeroForEqualShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.1, 1000), 1, 20).Draw(t, "values")
		factor := rapid.Float64Range(0.01, 100).Draw(t, "factor")
		scaled := make([]float64, len(values))
		equal := make([]float64, len(values))
		for i, v := range values {
			scaled[i], equal[i] = v*factor, factor
		}
		if a, b := variation(values), variation(scaled); math.Abs(a-b) > 1e-9 {
			t.Fatalf("variation %v, scaled %v", a, b)
		}
		if v := variation(equal); v > 1e-9 {
			t.Fatalf("variation of equal values is %v", v)
		}
	})
	if got := variation([]float64{1, 3}); got != 0.5 {
		t.Errorf("variation of 1 and 3 is %v, want 0.5", got)
	}
	if got := variation([]float64{0, 0}); got != 0 {
		t.Errorf("variation of nothing is %v", got)
	}
}

func TestPercentileIsTheLeastValueThatCoversTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 30).Draw(t, "values")
		p := rapid.Float64Range(0.001, 1).Draw(t, "share")
		got := percentile(slices.Clone(values), p)
		covered := func(limit float64) (n float64) {
			for _, v := range values {
				if v <= limit {
					n++
				}
			}
			return n / float64(len(values))
		}
		if covered(got) < p-1e-12 {
			t.Fatalf("only %v of the values are at most %v", covered(got), got)
		}
		if below := math.Nextafter(got, -1); covered(below) >= p && slices.Contains(values, got) && covered(below) > p+1e-12 {
			t.Fatalf("less than %v covers %v", got, covered(below))
		}
	})
	if got := percentile(nil, 0.5); got != 0 {
		t.Errorf("percentile of nothing is %v", got)
	}
}
