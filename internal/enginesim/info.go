package enginesim

import (
	"context"
	"net/http"
	"slices"
)

// Version is the release whose API the simulator follows.
const Version = "0.5.16"

// askScheduler is a question and answer with the schedulers: it hangs while they are dead, and the answer is a
// sign of life.
func (s *Server) askScheduler(ctx context.Context) error {
	return s.await(ctx, func(st *state) bool {
		if st.halts&haltHung != 0 {
			return false
		}
		st.controls++
		return true
	})
}

func (s *Server) handleModelInfo(w http.ResponseWriter, _ *http.Request) error {
	var loaded weights
	s.read(func(st *state) { loaded = st.weights })
	writeJSON(w, http.StatusOK, map[string]any{
		"model_path": loaded.path, "tokenizer_path": s.cfg.ModelPath, "is_generation": true,
		"preferred_sampling_params": nil, "weight_version": loaded.version,
		"has_image_understanding": false, "has_audio_understanding": false,
		"model_type": "simulated", "architectures": []string{"SimulatedForCausalLM"},
	})
	return nil
}

// handleServerInfo tells all of the engine's arguments, as the real one does: its keys too, to whoever has the api
// key, and again in the state of each rank.
func (s *Server) handleServerInfo(w http.ResponseWriter, r *http.Request) error {
	if err := s.askScheduler(r.Context()); err != nil {
		return err
	}
	var loaded weights
	var loads []loadSnapshot
	s.read(func(st *state) { loaded, loads = st.weights, s.loadsLocked() })
	internal := make([]map[string]any, len(loads))
	for i, l := range loads {
		internal[i] = map[string]any{
			"api_key": nullIfEmpty(s.cfg.APIKey), "admin_api_key": nullIfEmpty(s.cfg.AdminAPIKey), "ssl_keyfile_password": nil,
			"effective_max_running_requests_per_dp": s.cfg.Model.MaxRunning,
			"last_gen_throughput":                   s.throughput(l),
			"memory_usage": map[string]any{
				"weight_gb": 16.0, "kv_cache_gb": 32.0, "token_capacity": l.load.MaxTokens,
			},
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"api_key": nullIfEmpty(s.cfg.APIKey), "admin_api_key": nullIfEmpty(s.cfg.AdminAPIKey), "ssl_keyfile_password": nil,
		"model_path": loaded.path, "served_model_name": loaded.served, "tokenizer_path": s.cfg.ModelPath,
		"weight_version": loaded.version, "tp_size": 1, "dp_size": s.cfg.DPSize,
		"max_running_requests": s.cfg.Model.MaxRunning, "max_queued_requests": nullIfZero(s.cfg.MaxQueued),
		"chunked_prefill_size": s.cfg.Model.ChunkTokens, "page_size": s.cfg.Model.BlockTokens,
		"disaggregation_mode": "null", "enable_metrics": s.cfg.Metrics == On,
		"disable_radix_cache":          s.cfg.RadixCache == Off,
		"enable_memory_saver":          s.cfg.MemorySaver == On,
		"incremental_streaming_output": s.cfg.Streaming == Incremental,
		"status":                       "ready", "max_total_num_tokens": s.maxTokens(), "max_req_input_len": s.maxTokens() - 1,
		"internal_states": internal, "version": Version, "kv_events": nil,
	})
	return nil
}

func nullIfZero(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func nullIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s *Server) handleModels(w http.ResponseWriter, _ *http.Request) error {
	var loaded weights
	s.read(func(st *state) { loaded = st.weights })
	writeJSON(w, http.StatusOK, map[string]any{
		"object": "list",
		"data": []map[string]any{{
			"id": loaded.served, "object": "model", "created": s.time.origin.Unix(), "owned_by": "sglang",
			"root": loaded.served, "parent": nil, "max_model_len": s.maxTokens(),
		}},
	})
	return nil
}

// handleWeightVersion is the older form of /model_info.
func (s *Server) handleWeightVersion(w http.ResponseWriter, _ *http.Request) error {
	var version string
	s.read(func(st *state) { version = st.weights.version })
	writeJSON(w, http.StatusOK, map[string]any{"weight_version": version})
	return nil
}

// handleSimState shows what no client of a real engine could see.
func (s *Server) handleSimState(w http.ResponseWriter, _ *http.Request) error {
	var out map[string]any
	s.read(func(st *state) {
		ids := make([]string, 0, len(st.sequences))
		for id := range st.sequences {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		out = map[string]any{
			"name": s.cfg.Name, "life": s.life, "engine_seconds": s.now().Seconds(), "speed": s.cfg.Speed,
			"paused": string(st.gate.paused), "parked": st.gate.parked, "inside": st.gate.readers,
			"updates_waiting": st.gate.wanting, "updates_running": st.gate.writing,
			"sequences": ids, "weights": map[string]any{"version": st.weights.version, "content": st.weights.content},
		}
	})
	writeJSON(w, http.StatusOK, out)
	return nil
}
