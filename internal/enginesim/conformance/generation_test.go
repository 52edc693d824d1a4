package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

// generated is one element of a reply of /generate.
type generated struct {
	Text      string `json:"text"`
	OutputIDs []int  `json:"output_ids"`
	Index     int    `json:"index"`
	Meta      struct {
		ID           string         `json:"id"`
		Reason       map[string]any `json:"finish_reason"`
		Prompt       int            `json:"prompt_tokens"`
		Completion   int            `json:"completion_tokens"`
		Cached       int            `json:"cached_tokens"`
		Version      string         `json:"weight_version"`
		Retractions  int            `json:"num_retractions"`
		Rank         *int           `json:"dp_rank"`
		Logprobs     [][]any        `json:"output_token_logprobs"`
		TopLogprobs  [][][]any      `json:"output_top_logprobs"`
		InputLogprob [][]any        `json:"input_token_logprobs"`
	} `json:"meta_info"`
}

func (e *engine) generate(t *testing.T, request map[string]any, headers ...string) generated {
	t.Helper()
	var out generated
	e.ok(t, "/generate", body(request), headers...).decode(t, &out)
	return out
}

func generationRows() []row {
	return []row{
		{"1.4", "/generate replies with text, tokens and meta_info, by POST and PUT", nothing, nil, func(t *testing.T, e *engine) {
			request := body(map[string]any{"text": "hello", "rid": e.rid(t), "sampling_params": tokens(4)})
			for _, method := range []string{http.MethodPost, http.MethodPut} {
				r := e.call(t.Context(), method, "/generate", request)
				wantStatus(t, r, http.StatusOK)
				o := r.object(t)
				wantKeys(t, o, "text", "output_ids", "meta_info")
				meta, _ := o["meta_info"].(map[string]any)
				wantKeys(t, meta, "id", "finish_reason", "prompt_tokens", "weight_version", "num_retractions", "completion_tokens",
					"cached_tokens", "e2e_latency")
			}
		}},
		{"1.4", "the reply's id is the request's rid", nothing, nil, func(t *testing.T, e *engine) {
			rid := e.rid(t)
			if g := e.generate(t, map[string]any{"text": "x", "rid": rid, "sampling_params": tokens(1)}); g.Meta.ID != rid {
				t.Errorf("id %q", g.Meta.ID)
			}
		}},
		{"1.4", "input_ids are counted as they are", nothing, nil, func(t *testing.T, e *engine) {
			g := e.generate(t, map[string]any{"input_ids": []int{11, 12, 13}, "sampling_params": tokens(2)})
			if g.Meta.Prompt != 3 || g.Meta.Completion != 2 || len(g.OutputIDs) != 2 {
				t.Errorf("%+v", g)
			}
		}},
		{"1.4", "a batch replies with a list, samples included", nothing, nil, checkBatch},
		{"1.4", "an output that reaches its limit ends with length", nothing, nil, func(t *testing.T, e *engine) {
			g := e.generate(t, map[string]any{"text": "x", "sampling_params": tokens(3)})
			if diff := cmp.Diff(map[string]any{"type": "length", "length": 3.0}, g.Meta.Reason); diff != "" {
				t.Error(diff)
			}
		}},
		{"1.4", "an output that ends by itself ends with stop", simulator, func(c *enginesim.Config) { c.NaturalTokens = 5 },
			func(t *testing.T, e *engine) {
				g := e.generate(t, map[string]any{"text": "x", "sampling_params": map[string]any{"max_new_tokens": 100}})
				if g.Meta.Reason["type"] != "stop" || g.Meta.Completion >= 10 {
					t.Errorf("%+v", g.Meta)
				}
			}},
		{"1.4", "a stop token ends the output and is named", nothing, nil, func(t *testing.T, e *engine) {
			request := map[string]any{"text": "x", "sampling_params": map[string]any{"max_new_tokens": 6, "ignore_eos": true, "temperature": 0}}
			third := e.generate(t, request).OutputIDs[2]
			request["sampling_params"].(map[string]any)["stop_token_ids"] = []int{third}
			g := e.generate(t, request)
			if g.Meta.Reason["type"] != "stop" || g.Meta.Reason["matched"] != float64(third) || g.Meta.Completion > 3 {
				t.Errorf("%+v", g.Meta)
			}
		}},
		{"1.4", "a stop string ends the output, is named and is not in the text", nothing, nil, func(t *testing.T, e *engine) {
			request := map[string]any{"text": "x", "sampling_params": map[string]any{"max_new_tokens": 12, "ignore_eos": true, "temperature": 0}}
			whole := e.generate(t, request).Text
			stop := whole[len(whole)/2 : len(whole)/2+4]
			request["sampling_params"].(map[string]any)["stop"] = stop
			for _, stream := range []bool{false, true} {
				request["stream"] = stream
				r := e.ok(t, "/generate", body(request))
				var g generated
				if stream {
					events := generatedEvents(t, r)
					g = events[len(events)-1]
				} else {
					r.decode(t, &g)
				}
				if g.Meta.Reason["type"] != "stop" || g.Meta.Reason["matched"] != stop || !strings.HasPrefix(whole, g.Text) || strings.Contains(g.Text, stop) {
					t.Errorf("%q up to %q is %q, %v", whole, stop, g.Text, g.Meta.Reason)
				}
			}
		}},
		{"1.4", "equal requests get equal tokens", nothing, nil, func(t *testing.T, e *engine) {
			request := map[string]any{"text": "the same", "sampling_params": map[string]any{"max_new_tokens": 8, "temperature": 0, "sampling_seed": 7}}
			if diff := cmp.Diff(e.generate(t, request).OutputIDs, e.generate(t, request).OutputIDs); diff != "" {
				t.Error(diff)
			}
		}},
		{"1.4", "the next turn of a session finds its prefix in the cache", nothing, nil, func(t *testing.T, e *engine) {
			session := e.rid(t)
			prompt := strings.Repeat("a prompt that is long enough to fill some blocks. ", 20)
			turn := func(text string) generated {
				return e.generate(t, map[string]any{"text": text, "session_id": session, "sampling_params": tokens(2)})
			}
			turn(prompt)
			if again := turn(prompt + "and more"); again.Meta.Cached == 0 || again.Meta.Cached >= again.Meta.Prompt {
				t.Errorf("%d of %d cached", again.Meta.Cached, again.Meta.Prompt)
			}
		}},
		{"1.4", "with --disable-radix-cache the next turn finds nothing, and /server_info says so", simulator,
			func(c *enginesim.Config) { c.RadixCache = enginesim.Off }, func(t *testing.T, e *engine) {
				prompt := strings.Repeat("a prompt that is long enough to fill some blocks. ", 20)
				for range 2 {
					g := e.generate(t, map[string]any{"text": prompt, "session_id": "s", "sampling_params": tokens(2)})
					if g.Meta.Cached != 0 {
						t.Errorf("%d of %d cached", g.Meta.Cached, g.Meta.Prompt)
					}
				}
				if o := e.get(t, "/server_info").object(t); o["disable_radix_cache"] != true {
					t.Errorf("disable_radix_cache is %v", o["disable_radix_cache"])
				}
			}},
		{"1.4", "log-probabilities come when they are asked for", nothing, nil, func(t *testing.T, e *engine) {
			g := e.generate(t, map[string]any{
				"input_ids": []int{5, 6, 7}, "sampling_params": tokens(3), "return_logprob": true, "logprob_start_len": 0, "top_logprobs_num": 2,
			})
			if len(g.Meta.Logprobs) != 3 || len(g.Meta.TopLogprobs) != 3 || len(g.Meta.InputLogprob) != 3 || len(g.Meta.TopLogprobs[0]) != 2 {
				t.Fatalf("%+v", g.Meta)
			}
			for i, p := range g.Meta.Logprobs {
				if value, ok := p[0].(float64); !ok || value > 0 || p[1] != float64(g.OutputIDs[i]) {
					t.Errorf("token %d: %v", i, p)
				}
			}
		}},
		{"1.4", "a prompt longer than the context is 400", simulator, func(c *enginesim.Config) { c.Model.KVTokens = 160 },
			func(t *testing.T, e *engine) {
				wantHandlerError(t, e.post(t, "/generate", body(map[string]any{"text": strings.Repeat("x", 5000)})), http.StatusBadRequest)
			}},
		{"1.4", "a data-parallel rank out of range is 400", nothing, nil, func(t *testing.T, e *engine) {
			for _, field := range []string{"routed_dp_rank", "data_parallel_rank"} {
				wantStatus(t, e.post(t, "/generate", body(map[string]any{"text": "x", field: 99})), http.StatusBadRequest)
			}
		}},
		{"1.4", "a rank is used when it is named, and the header goes before the body", simulator, twoRanks, func(t *testing.T, e *engine) {
			request := map[string]any{"text": "x", "routed_dp_rank": 0, "sampling_params": tokens(1)}
			if g := e.generate(t, request); g.Meta.Rank == nil || *g.Meta.Rank != 0 {
				t.Errorf("%+v", g.Meta)
			}
			if g := e.generate(t, request, "X-Data-Parallel-Rank", "1"); g.Meta.Rank == nil || *g.Meta.Rank != 1 {
				t.Errorf("%+v", g.Meta)
			}
			wantStatus(t, e.post(t, "/generate", body(request), "X-Data-Parallel-Rank", "one"), http.StatusBadRequest)
		}},
		{"1.4", "a full queue is 503 and says so", simulator, oneSlot, checkQueueFull},
		{"1.4", "a rid that is in flight is refused with 400", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			wantStatus(t, e.post(t, "/generate", body(map[string]any{"text": "x", "rid": p.rid})), http.StatusBadRequest)
			e.abort(t, p.rid)
			wantStatus(t, p.wait(t), http.StatusOK)
		}},
	}
}

// oneSlot is an engine that runs one request and lets one wait.
func oneSlot(c *enginesim.Config) { c.Model.MaxRunning, c.MaxQueued = 1, 1 }

func checkBatch(t *testing.T, e *engine) {
	var out []generated
	e.ok(t, "/generate", `{"text":["one","two"],"sampling_params":{"max_new_tokens":2,"ignore_eos":true}}`).decode(t, &out)
	if len(out) != 2 || out[0].Meta.ID == out[1].Meta.ID {
		t.Errorf("two prompts: %+v", out)
	}
	e.ok(t, "/generate", `{"text":"one","sampling_params":{"max_new_tokens":2,"n":3}}`).decode(t, &out)
	if len(out) != 3 {
		t.Errorf("three samples: %+v", out)
	}
	wantStatus(t, e.post(t, "/generate", `{"text":["one","two"],"rid":["a","b","c"]}`), http.StatusBadRequest)
}

func checkQueueFull(t *testing.T, e *engine) {
	runs := e.hold(t)
	waits := e.background(t, "/generate", `{"text":"waits"}`)
	eventually(t, "one waits", func() bool { return e.loads(t)[0].Waiting == 1 })
	r := e.post(t, "/generate", `{"text":"too many"}`)
	wantStatus(t, r, http.StatusServiceUnavailable)
	if !strings.Contains(r.body, "The request queue is full.") {
		t.Error(r.body)
	}
	e.abort(t, runs.rid)
	wantStatus(t, waits.wait(t), http.StatusOK)
}
