package enginesim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var loadSections = []string{"core", "memory", "spec", "lora", "disagg", "queues", "all"}

// loadsLocked is what can be read of every rank's load: as of now, or of before the engine halted.
func (s *Server) loadsLocked() []loadSnapshot {
	out := make([]loadSnapshot, len(s.st.ranks))
	for i := range out {
		out[i] = s.st.snapshot(i, s.time.seconds())
		if s.st.faults.frozen > 0 {
			out[i].at = s.st.faults.frozen
		}
	}
	return out
}

func (s *Server) handleLoads(w http.ResponseWriter, r *http.Request) error {
	include := strings.Split(firstOf(r.URL.Query().Get("include"), "all"), ",")
	for _, section := range include {
		if !slices.Contains(loadSections, section) {
			return httpError(http.StatusBadRequest, fmt.Sprintf("Invalid include section %q, valid are %v", section, loadSections))
		}
	}
	only := -1
	if q := r.URL.Query().Get("dp_rank"); q != "" {
		n, err := strconv.Atoi(q)
		if err != nil {
			return invalidBody("query.dp_rank: Input should be a valid integer")
		}
		only = n
	}
	var loads []loadSnapshot
	s.read(func(*state) { loads = s.loadsLocked() })
	if r.URL.Query().Get("format") == "prometheus" {
		s.writeLoadMetrics(w, r, loads)
		return nil
	}
	out := []map[string]any{}
	for i, l := range loads {
		if only < 0 || only == i {
			out = append(out, s.describeLoad(i, l, include))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"timestamp": s.time.seconds(), "version": Version, "accelerator": "simulated",
		"num_accelerators": s.cfg.DPSize, "loads": out,
	})
	return nil
}

func (s *Server) describeLoad(rank int, l loadSnapshot, include []string) map[string]any {
	has := func(section string) bool { return slices.Contains(include, section) || slices.Contains(include, "all") }
	n := l.load
	out := map[string]any{
		"timestamp": l.at, "dp_rank": rank, "num_running_reqs": n.Running, "num_waiting_reqs": n.Waiting,
		"num_waiting_uncached_tokens": n.WaitingTokens, "num_used_tokens": n.UsedTokens,
		"num_total_tokens": n.UsedTokens + n.WaitingTokens, "num_active_tokens": n.UsedTokens,
		"max_total_num_tokens": n.MaxTokens, "max_running_requests": n.MaxRunning,
		"token_usage": ratio(n.UsedTokens, n.MaxTokens), "gen_throughput": s.throughput(l),
		"cache_hit_rate": ratio(int(n.Totals.Cached), int(n.Totals.Prompt)), "utilization": ratio(n.Running, n.MaxRunning),
	}
	if has("memory") {
		out["memory"] = map[string]any{"weight_gb": 16.0, "kv_cache_gb": 32.0, "token_capacity": n.MaxTokens}
	}
	if has("disagg") {
		out["disaggregation"] = map[string]any{"mode": "null"}
	}
	if has("queues") {
		out["queues"] = map[string]any{
			"waiting": n.Waiting, "grammar": 0, "paused": 0, "retracted": n.Retracted, "prealloc_ready": 0,
		}
	}
	return out
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// throughput is the output tokens per second of engine time that the rank would make with its batch as it is.
func (s *Server) throughput(l loadSnapshot) float64 {
	if l.load.Running == 0 {
		return 0
	}
	step := s.cfg.Model.DecodeBase.Seconds() + float64(l.load.Running)*s.cfg.Model.DecodePerRequest.Seconds()
	return float64(l.load.Running) / step
}

// handleGetLoad is the older form of /v1/loads.
func (s *Server) handleGetLoad(w http.ResponseWriter, r *http.Request) error {
	if err := s.askScheduler(r.Context()); err != nil {
		return err
	}
	var loads []loadSnapshot
	s.read(func(*state) { loads = s.loadsLocked() })
	out := make([]map[string]any, len(loads))
	for i, l := range loads {
		out[i] = map[string]any{
			"dp_rank": i, "num_reqs": l.load.Running + l.load.Waiting, "num_waiting_reqs": l.load.Waiting,
			"num_tokens": l.load.UsedTokens + l.load.WaitingTokens, "num_pending_tokens": l.load.WaitingTokens, "ts_tic": l.at,
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// writeLoadMetrics is /v1/loads?format=prometheus.
func (s *Server) writeLoadMetrics(w http.ResponseWriter, r *http.Request, loads []loadSnapshot) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{server: s, loads: loads})
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
