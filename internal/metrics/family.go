package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is a type of metric, as Prometheus calls it.
type Kind string

// The kinds.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// Family is one family of metrics.
type Family struct {
	// Name is the full name. It ends in the unit, and in _total if it only grows.
	Name string
	Kind Kind
	// Unit of the values, in words; 1 is what a gauge of yes and no has.
	Unit   string
	Labels []string
	// Help is one sentence.
	Help string
}

// Families lists every family that the manager exports besides those of controller-runtime and Go,
// in the order of their names.
func Families() []Family {
	list := slices.Concat(poolFamilies(), leaseFamilies(), backendFamilies(), proxyFamilies(), workFamilies(), portFamilies())
	slices.SortFunc(list, func(a, b Family) int {
		if a.Name < b.Name {
			return -1
		}
		return 1 // names are unique
	})
	return list
}

// shapes are the descriptions of families by name.
type shapes map[string]shape

type shape struct {
	kind prometheus.ValueType
	desc *prometheus.Desc
}

func newShapes(families ...[]Family) shapes {
	out := shapes{}
	for _, f := range slices.Concat(families...) {
		kind := prometheus.GaugeValue
		if f.Kind == Counter {
			kind = prometheus.CounterValue
		}
		out[f.Name] = shape{kind, prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)}
	}
	return out
}

func (s shapes) describe(to chan<- *prometheus.Desc) {
	for _, v := range s {
		to <- v.desc
	}
}

// sheet is what one scrape fills in.
type sheet struct {
	shapes shapes
	to     chan<- prometheus.Metric
}

// put adds one value of a gauge or counter, with its labels in the order of the family's.
func (s sheet) put(family string, value float64, labels ...string) {
	v := s.shapes[family]
	s.to <- prometheus.MustNewConstMetric(v.desc, v.kind, value, labels...)
}

// classes adds one histogram. bounds are in seconds and counts are disjoint, one more than bounds.
func (s sheet) classes(family string, bounds []float64, counts []uint64, sum float64, labels ...string) {
	buckets := make(map[float64]uint64, len(bounds))
	var below uint64
	for i, bound := range bounds {
		below += counts[i]
		buckets[bound] = below
	}
	s.to <- prometheus.MustNewConstHistogram(s.shapes[family].desc, below+counts[len(bounds)], sum, buckets, labels...)
}

// yes is the value of a gauge of yes and no.
func yes(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
