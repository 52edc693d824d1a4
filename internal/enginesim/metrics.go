package enginesim

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func (s *Server) handleMetrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics != On {
		return httpError(http.StatusNotFound, "Not Found")
	}
	var loads []loadSnapshot
	var totals counts
	var parked int
	s.read(func(st *state) { loads, totals, parked = s.loadsLocked(), st.counts, st.gate.readers })
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collector{server: s, loads: loads},
		engineCollector{server: s, counts: totals, active: parked},
	)
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// collector reports the load of each rank as it was read.
type collector struct {
	server *Server
	loads  []loadSnapshot
}

// Describe sends nothing: the metrics are made for each scrape and checked when they are collected.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the gauges and counters of each rank.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for i, l := range c.loads {
		labels := c.server.labels(i)
		n := l.load
		for name, v := range map[string]float64{
			"num_running_reqs": float64(n.Running), "num_queue_reqs": float64(n.Waiting),
			"num_used_tokens": float64(n.UsedTokens), "max_total_num_tokens": float64(n.MaxTokens),
			"token_usage": ratio(n.UsedTokens, n.MaxTokens), "utilization": ratio(n.Running, n.MaxRunning),
			"cache_hit_rate": ratio(int(n.Totals.Cached), int(n.Totals.Prompt)),
			"gen_throughput": c.server.throughput(l), "num_paused_reqs": 0, "num_retracted_reqs": float64(n.Retracted),
		} {
			out <- labels.metric(name, prometheus.GaugeValue, v)
		}
		for name, v := range map[string]int64{
			"prompt_tokens_total": n.Totals.Prompt, "generation_tokens_total": n.Totals.Generated,
			"cached_tokens_total": n.Totals.Cached,
		} {
			out <- labels.metric(name, prometheus.CounterValue, float64(v))
		}
	}
}

// engineCollector reports what is counted for the engine as a whole.
type engineCollector struct {
	server *Server
	counts counts
	active int
}

// Describe sends nothing, for the reason that collector gives.
func (engineCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the engine's counters and the sums of its durations, in seconds of engine time.
func (c engineCollector) Collect(out chan<- prometheus.Metric) {
	labels := c.server.labels(0)
	for name, v := range map[string]int64{
		"num_requests_total": c.counts.requests, "num_aborted_requests_total": c.counts.aborted,
	} {
		out <- labels.metric(name, prometheus.CounterValue, float64(v))
	}
	for name, v := range map[string]float64{
		"http_requests_active": float64(c.active), "routing_keys_active": 0, "num_unique_running_routing_keys": 0,
		"weight_load_duration_seconds": c.counts.updateTime.Seconds(),
	} {
		out <- labels.metric(name, prometheus.GaugeValue, v)
	}
	for name, v := range map[string]summary{
		"e2e_request_latency_seconds": c.counts.latency, "time_to_first_token_seconds": c.counts.first,
		"queue_time_seconds": c.counts.queue, "inter_token_latency_seconds": c.counts.between,
	} {
		out <- labels.histogram(name, v)
	}
}

// labelSet is the labels that each metric of a rank carries.
type labelSet struct{ names, values []string }

func (s *Server) labels(rank int) labelSet {
	l := labelSet{
		names:  []string{"model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank"},
		values: []string{s.cfg.ServedModelName, "unified", "0", "0", "0"},
	}
	if s.cfg.DPSize > 1 {
		l.names, l.values = append(l.names, "dp_rank"), append(l.values, strconv.Itoa(rank))
	}
	return l
}

func (l labelSet) desc(name string) *prometheus.Desc {
	return prometheus.NewDesc("sglang:"+name, "Simulated "+name+".", l.names, nil)
}

func (l labelSet) metric(name string, kind prometheus.ValueType, v float64) prometheus.Metric {
	return prometheus.MustNewConstMetric(l.desc(name), kind, v, l.values...)
}

// histogram has no buckets but the last: the simulator keeps sums and numbers only.
func (l labelSet) histogram(name string, v summary) prometheus.Metric {
	n := uint64(max(0, v.n))
	return prometheus.MustNewConstHistogram(l.desc(name), n, v.sum.Seconds(), nil, l.values...)
}
