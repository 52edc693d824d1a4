package alerts

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// scrape is the time between two samples.
const scrape = 15 * time.Second

// shelf holds series for a promql.Engine.
type shelf []storage.Series

// Querier and Select give what matches, in the order of labels.
func (s shelf) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var out []storage.Series
		for _, series := range s {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) }) {
				out = append(out, series)
			}
		}
		slices.SortFunc(out, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		return &found{list: out, at: -1}
	}}, nil
}

// found is a storage.SeriesSet.
type found struct {
	list []storage.Series
	at   int
}

func (f *found) Next() bool                        { f.at++; return f.at < len(f.list) }
func (f *found) At() storage.Series                { return f.list[f.at] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// sample is one value at one time.
type sample struct {
	t int64
	v float64
}

func (s sample) ST() int64                     { return 0 }
func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// course is a value over time.
type course func(at time.Duration) float64

func always(v float64) course { return func(time.Duration) float64 { return v } }

// rising grows by so much a minute.
func rising(perMinute float64) course {
	return func(at time.Duration) float64 { return math.Floor(at.Minutes() * perMinute) }
}

// lay puts series on a shelf, sampled from the beginning until then.
func lay(t *testing.T, series map[string]course, until time.Duration) shelf {
	t.Helper()
	var out shelf
	for selector, f := range series {
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(selector)
		if err != nil {
			t.Fatalf("%s: %v", selector, err)
		}
		var samples []chunks.Sample
		for at := time.Duration(0); at <= until; at += scrape {
			samples = append(samples, sample{at.Milliseconds(), f(at)})
		}
		out = append(out, storage.NewListSeries(metric, samples))
	}
	return out
}

// ask evaluates an expression at a moment.
func ask(t *testing.T, s shelf, expression string, at time.Duration) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	defer func() { _ = engine.Close() }()
	query, err := engine.NewInstantQuery(context.Background(), s, nil, expression, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	result := query.Exec(context.Background())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return slices.Clone(vector)
}
