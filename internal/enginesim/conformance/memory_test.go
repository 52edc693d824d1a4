package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func withMemorySaver(c *enginesim.Config) { c.MemorySaver = enginesim.On }
func withMetrics(c *enginesim.Config)     { c.Metrics = enginesim.On }

func memoryRows() []row {
	return []row{
		{"1.5", "an idle engine flushes its cache, by GET and POST", admin, nil, func(t *testing.T, e *engine) {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r := e.call(t.Context(), method, "/flush_cache", "")
				wantStatus(t, r, http.StatusOK)
				if !strings.HasPrefix(r.body, "Cache flushed") {
					t.Errorf("%q", r.body)
				}
			}
		}},
		{"1.5", "a flush forgets the prefixes", admin, nil, func(t *testing.T, e *engine) {
			request := map[string]any{"text": strings.Repeat("remember this. ", 60), "session_id": e.rid(t), "sampling_params": tokens(1)}
			e.generate(t, request)
			e.ok(t, "/flush_cache", "")
			if g := e.generate(t, request); g.Meta.Cached != 0 {
				t.Errorf("%d tokens are still there", g.Meta.Cached)
			}
		}},
		{"1.5", "a busy engine does not flush, nor when it stays busy until the timeout", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			r := e.post(t, "/flush_cache", "")
			wantStatus(t, r, http.StatusBadRequest)
			if r.body != "Flush cache failed." {
				t.Errorf("%q", r.body)
			}
			r = e.post(t, "/flush_cache?timeout=1", "")
			wantStatus(t, r, http.StatusBadRequest)
			if r.body != "Timed out waiting for idle state." {
				t.Errorf("%q", r.body)
			}
			e.abort(t, p.rid)
			wantStatus(t, p.wait(t), http.StatusOK)
			e.ok(t, "/flush_cache?timeout=30", "")
		}},
		{"1.5", "only one flush waits at a time", simulator, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			first := e.background(t, "/flush_cache?timeout=1000", "")
			eventually(t, "the second is refused", func() bool {
				return e.post(t, "/flush_cache", "").body == "Another flush_cache is already in progress."
			})
			e.abort(t, p.rid)
			wantStatus(t, first.wait(t), http.StatusOK)
		}},
		{"1.5", "memory can be released and resumed, and nothing is generated meanwhile", simulator, withMemorySaver, func(t *testing.T, e *engine) {
			if r := e.ok(t, "/release_memory_occupation", "{}"); r.body != "null" {
				t.Errorf("%q", r.body)
			}
			p := e.background(t, "/generate", `{"text":"x","sampling_params":{"max_new_tokens":1}}`)
			e.ok(t, "/resume_memory_occupation", `{"tags":["weights"]}`)
			if p.answered() {
				t.Error("it generated without its cache")
			}
			if r := e.ok(t, "/resume_memory_occupation", `{"tags":["kv_cache","cuda_graph"]}`); r.body != "null" {
				t.Errorf("%q", r.body)
			}
			wantStatus(t, p.wait(t), http.StatusOK)
		}},
		{"1.5", "without the memory saver memory is not released", simulator, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.post(t, "/release_memory_occupation", "{}"), http.StatusBadRequest)
		}},
		{"1.5", "a release on a busy engine kills it", simulator, withMemorySaver, func(t *testing.T, e *engine) {
			e.hold(t)
			e.post(t, "/release_memory_occupation", "{}")
			e.wantExit(t, 131)
		}},
	}
}

func metricsRows() []row {
	return []row{
		{"1.6", "without the flag there are no metrics", simulator, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.get(t, "/metrics"), http.StatusNotFound)
		}},
		{"1.6", "the metrics have the engine's names and count", simulator, withMetrics, func(t *testing.T, e *engine) {
			e.ok(t, "/generate", `{"text":"12345678","sampling_params":{"max_new_tokens":5,"ignore_eos":true}}`)
			r := e.get(t, "/metrics")
			wantStatus(t, r, http.StatusOK)
			for _, name := range []string{
				"num_running_reqs", "num_queue_reqs", "num_used_tokens", "token_usage", "cache_hit_rate", "gen_throughput",
				"max_total_num_tokens", "utilization", "num_paused_reqs", "num_retracted_reqs", "num_requests_total",
				"num_aborted_requests_total", "num_unique_running_routing_keys", "routing_keys_active", "http_requests_active",
				"queue_time_seconds", "time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds",
				"prompt_tokens_total", "generation_tokens_total", "cached_tokens_total", "weight_load_duration_seconds",
			} {
				if !strings.Contains(r.body, "# TYPE sglang:"+name+" ") {
					t.Errorf("%s is missing", name)
				}
			}
			for _, want := range []string{
				`sglang:generation_tokens_total{engine_type="unified",model_name="sim/model",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 5`,
				`sglang:prompt_tokens_total{engine_type="unified",model_name="sim/model",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 2`,
			} {
				if !strings.Contains(r.body, want) {
					t.Errorf("no %s in\n%s", want, r.body)
				}
			}
		}},
	}
}
