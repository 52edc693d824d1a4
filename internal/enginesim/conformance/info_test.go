package conformance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func infoRows() []row {
	return slices.Concat(modelRows(), loadRows())
}

func wantKeys(t *testing.T, o map[string]any, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, ok := o[k]; !ok {
			t.Errorf("%s is missing in %v", k, o)
		}
	}
}

func modelRows() []row {
	return []row{
		{"1.3", "/model_info tells the model and its version, and has an older alias", nothing, nil, func(t *testing.T, e *engine) {
			for _, path := range []string{"/model_info", "/get_model_info"} {
				wantKeys(t, e.get(t, path).object(t), "model_path", "tokenizer_path", "is_generation", "preferred_sampling_params",
					"weight_version", "has_image_understanding", "has_audio_understanding", "model_type", "architectures")
			}
			e.version(t)
		}},
		{"1.3", "the version is the string default until somebody sets it", simulator, nil, func(t *testing.T, e *engine) {
			if v := e.version(t); v != "default" {
				t.Errorf("version %q", v)
			}
		}},
		{"1.3", "the older version endpoints are 404 and point to /model_info", nothing, nil, func(t *testing.T, e *engine) {
			for _, path := range []string{"/weight_version", "/get_weight_version"} {
				r := e.get(t, path)
				wantStatus(t, r, http.StatusNotFound)
				if !strings.Contains(r.body, "/model_info") {
					t.Errorf("%s: %s", path, r.body)
				}
			}
		}},
		{"1.3", "an older engine answers the version endpoints and /get_load and has no /v1/loads", simulator,
			func(c *enginesim.Config) { c.Legacy = enginesim.LegacyOnly; c.WeightVersion = "v7" }, checkLegacy},
		{"1.3", "/server_info tells arguments and limits, and has an older alias", nothing, nil, func(t *testing.T, e *engine) {
			for _, path := range []string{"/server_info", "/get_server_info"} {
				o := e.get(t, path).object(t)
				wantKeys(t, o, "max_running_requests", "dp_size", "tp_size", "weight_version", "served_model_name",
					"disaggregation_mode", "status", "max_total_num_tokens", "max_req_input_len", "internal_states", "version", "kv_events")
				if o["status"] != "ready" {
					t.Errorf("status %v", o["status"])
				}
			}
		}},
		{"1.3", "/server_info tells the engine's keys as well, in the state of each rank too", simulator,
			func(c *enginesim.Config) { c.AdminAPIKey = "conformance-admin-key" }, func(t *testing.T, e *engine) {
				o := e.get(t, "/server_info").object(t)
				ranks, _ := o["internal_states"].([]any)
				if len(ranks) == 0 {
					t.Fatal("no ranks")
				}
				rank, _ := ranks[0].(map[string]any)
				for _, told := range []map[string]any{o, rank} {
					wantKeys(t, told, "api_key", "ssl_keyfile_password")
					if told["admin_api_key"] != "conformance-admin-key" {
						t.Errorf("admin_api_key %v", told["admin_api_key"])
					}
				}
			}},
		{"1.3", "/server_info answers while paused", admin, nil, func(t *testing.T, e *engine) {
			e.pause(t, "in_place")
			defer e.ok(t, "/continue_generation", "{}")
			wantStatus(t, e.get(t, "/server_info"), http.StatusOK)
		}},
		{"1.3", "/server_info blocks on a hung scheduler", simulator, nil, func(t *testing.T, e *engine) {
			e.fault(t, `{"kind":"scheduler-dead"}`)
			blocked := make(chan reply, 1)
			go func() { blocked <- e.call(t.Context(), http.MethodGet, "/server_info", "") }()
			wantStatus(t, e.get(t, "/model_info"), http.StatusOK)
			if len(blocked) > 0 {
				t.Error("it answered")
			}
			e.clearFaults(t)
			wantStatus(t, <-blocked, http.StatusOK)
		}},
		{"1.3", "/v1/models lists one model", nothing, nil, func(t *testing.T, e *engine) {
			o := e.get(t, "/v1/models").object(t)
			data, _ := o["data"].([]any)
			if o["object"] != "list" || len(data) != 1 {
				t.Fatalf("%v", o)
			}
			model, _ := data[0].(map[string]any)
			wantKeys(t, model, "id", "object", "created", "owned_by", "root", "parent", "max_model_len")
			if model["owned_by"] != "sglang" {
				t.Errorf("owned by %v", model["owned_by"])
			}
		}},
	}
}

func checkLegacy(t *testing.T, e *engine) {
	for _, path := range []string{"/weight_version", "/get_weight_version"} {
		if v := e.get(t, path).object(t)["weight_version"]; v != "v7" {
			t.Errorf("%s: %v", path, v)
		}
	}
	wantStatus(t, e.get(t, "/v1/loads"), http.StatusNotFound)
	var ranks []map[string]any
	e.get(t, "/get_load").decode(t, &ranks)
	if len(ranks) != 1 {
		t.Fatalf("%v", ranks)
	}
	wantKeys(t, ranks[0], "dp_rank", "num_reqs", "num_waiting_reqs", "num_tokens", "num_pending_tokens", "ts_tic")
}

func twoRanks(c *enginesim.Config) { c.DPSize = 2; c.Model.MaxRunning = 3 }

func loadRows() []row {
	return []row{
		{"1.3", "/v1/loads tells each rank's load", nothing, nil, func(t *testing.T, e *engine) {
			o := e.get(t, "/v1/loads").object(t)
			wantKeys(t, o, "timestamp", "version", "accelerator", "num_accelerators", "loads")
			ranks, _ := o["loads"].([]any)
			for _, r := range ranks {
				rank, _ := r.(map[string]any)
				wantKeys(t, rank, "timestamp", "dp_rank", "num_running_reqs", "num_waiting_reqs", "num_waiting_uncached_tokens",
					"num_used_tokens", "num_total_tokens", "num_active_tokens", "max_total_num_tokens", "max_running_requests",
					"token_usage", "gen_throughput", "cache_hit_rate", "utilization", "queues")
				queues, _ := rank["queues"].(map[string]any)
				wantKeys(t, queues, "waiting", "grammar", "paused", "retracted", "prealloc_ready")
			}
			if len(ranks) == 0 {
				t.Error("no ranks")
			}
		}},
		{"1.3", "/v1/loads includes what is asked and refuses what it does not know", nothing, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.get(t, "/v1/loads?include=everything"), http.StatusBadRequest)
			core := e.get(t, "/v1/loads?include=core").object(t)
			rank, _ := core["loads"].([]any)[0].(map[string]any)
			if _, ok := rank["queues"]; ok {
				t.Error("queues, though only core was asked")
			}
		}},
		{"1.3", "/v1/loads filters by rank and speaks Prometheus", nothing, nil, func(t *testing.T, e *engine) {
			var out struct {
				Loads []load `json:"loads"`
			}
			e.get(t, "/v1/loads?dp_rank=0").decode(t, &out)
			if len(out.Loads) != 1 {
				t.Errorf("%d ranks", len(out.Loads))
			}
			r := e.get(t, "/v1/loads?format=prometheus")
			wantStatus(t, r, http.StatusOK)
			if !strings.Contains(r.body, "sglang:num_running_reqs") {
				t.Errorf("%.300s", r.body)
			}
		}},
		{"1.3", "the snapshot is stale while paused and does not count parked requests", admin, nil, checkStaleLoads},
		{"1.3", "the snapshot's clock runs while the engine is idle", nothing, nil, func(t *testing.T, e *engine) {
			before := e.loads(t)[0].Timestamp
			eventually(t, "a newer snapshot", func() bool { return e.loads(t)[0].Timestamp > before })
		}},
		{"1.3", "the snapshot's clock can freeze", simulator, nil, func(t *testing.T, e *engine) {
			e.fault(t, `{"kind":"freeze-loads"}`)
			before := e.loads(t)[0].Timestamp
			p := e.hold(t)
			if after := e.loads(t)[0]; after.Timestamp != before || after.Running != 1 {
				t.Errorf("%+v, the clock was %v", after, before)
			}
			e.abort(t, p.rid)
		}},
		{"1.3", "capacity is the sum over ranks and agrees with /server_info", nothing, twoRanks, checkCapacity},
	}
}

func checkStaleLoads(t *testing.T, e *engine) {
	p := e.hold(t)
	e.pause(t, "in_place")
	defer e.ok(t, "/continue_generation", "{}")
	before := e.loads(t)
	e.background(t, "/generate", `{"text":"parked"}`)
	if e.simulated != nil {
		eventually(t, "one is parked", func() bool { return e.get(t, "/sim/state").object(t)["parked"] == 1.0 })
	}
	after := e.loads(t)
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("rank %d changed while paused: %+v, %+v", i, before[i], after[i])
		}
	}
	if before[0].Running != 1 {
		t.Errorf("the snapshot of before the pause has one running: %+v", before[0])
	}
	e.abort(t, p.rid)
}

func checkCapacity(t *testing.T, e *engine) {
	sum := 0
	for _, l := range e.loads(t) {
		if l.MaxTokens <= 0 {
			t.Errorf("no KV bound: %+v", l)
		}
		sum += l.MaxRunning
	}
	var info struct {
		States []struct {
			Max int `json:"effective_max_running_requests_per_dp"`
		} `json:"internal_states"`
	}
	e.get(t, "/server_info").decode(t, &info)
	told := 0
	for _, s := range info.States {
		told += s.Max
	}
	if sum == 0 || sum != told {
		t.Errorf("loads say %d, server_info says %d", sum, told)
	}
	if e.simulated != nil && sum != 6 {
		t.Errorf("two ranks of 3 make %d", sum)
	}
}
