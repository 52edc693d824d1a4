package conformance

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func abortRows() []row {
	return []row{
		{"1.4", "an aborted running request replies 200 with what it had", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.abort(t, p.rid)
			var g generated
			r := p.wait(t)
			wantStatus(t, r, http.StatusOK)
			r.decode(t, &g)
			want := map[string]any{"type": "abort", "message": "Aborted", "status_code": nil, "err_type": nil}
			if diff := cmp.Diff(want, g.Meta.Reason); diff != "" {
				t.Error(diff)
			}
		}},
		{"1.4", "an aborted waiting request replies 200 with little meta_info", simulator,
			func(c *enginesim.Config) { c.Model.MaxRunning = 1 }, checkAbortWaiting},
		{"1.5", "abort matches by prefix and leaves others alone", admin, nil, func(t *testing.T, e *engine) {
			prefix := e.rid(t)
			var ps []*pending
			for _, suffix := range []string{"-a", "-b"} {
				ps = append(ps, e.background(t, "/generate", body(map[string]any{"text": "x", "rid": prefix + suffix, "sampling_params": tokens(e.endless)})))
			}
			other := e.hold(t)
			eventually(t, "all three run", func() bool { return e.running(t) >= 3 })
			e.abort(t, prefix)
			for _, p := range ps {
				wantStatus(t, p.wait(t), http.StatusOK)
			}
			if other.answered() {
				t.Error("the other was aborted too")
			}
			e.abort(t, other.rid)
			other.wait(t)
		}},
		{"1.5", "abort of an empty or unknown rid changes nothing and answers 200", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.abort(t, "")
			e.abort(t, "nobody")
			if e.running(t) == 0 || p.answered() {
				t.Error("the request was aborted")
			}
			e.ok(t, "/abort_request", `{"rid":"","abort_all":true}`)
			wantStatus(t, p.wait(t), http.StatusOK)
		}},
		{"1.5", "an abort's message is told to the client", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.ok(t, "/abort_request", body(map[string]any{"rid": p.rid, "abort_message": "not needed any more"}))
			var g generated
			p.wait(t).decode(t, &g)
			if g.Meta.Reason["message"] != "not needed any more" {
				t.Errorf("%v", g.Meta.Reason)
			}
		}},
		{"1.4", "a client that disconnects aborts its request", nothing, nil, func(t *testing.T, e *engine) {
			for _, stream := range []bool{false, true} {
				before := e.running(t)
				p := e.background(t, "/generate", body(map[string]any{"text": "x", "stream": stream, "sampling_params": tokens(e.endless)}))
				eventually(t, "it runs", func() bool { return e.running(t) > before })
				p.cancel()
				p.wait(t)
				eventually(t, "it is gone", func() bool { return e.running(t) == before })
			}
		}},
	}
}

func checkAbortWaiting(t *testing.T, e *engine) {
	runs := e.hold(t)
	rid := e.rid(t)
	waits := e.background(t, "/generate", body(map[string]any{"text": "x", "rid": rid}))
	eventually(t, "one waits", func() bool { return e.loads(t)[0].Waiting == 1 })
	e.abort(t, rid)
	r := waits.wait(t)
	wantStatus(t, r, http.StatusOK)
	meta, _ := r.object(t)["meta_info"].(map[string]any)
	var got []string
	for k := range meta {
		got = append(got, k)
	}
	want := []string{"id", "finish_reason", "weight_version", "e2e_latency", "completion_tokens"}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Error(diff)
	}
	if reason, _ := meta["finish_reason"].(map[string]any); reason["message"] != "Abort in waiting queue" {
		t.Errorf("%v", reason)
	}
	e.abort(t, runs.rid)
}
