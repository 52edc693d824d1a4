package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

// generatedEvents reads a stream of /generate, which must end with [DONE].
func generatedEvents(t *testing.T, r reply) []generated {
	t.Helper()
	wantStatus(t, r, http.StatusOK)
	events := r.events(t)
	if len(events) < 2 || events[len(events)-1] != "[DONE]" {
		t.Fatalf("the stream does not end with [DONE]: %q", events)
	}
	out := make([]generated, len(events)-1)
	for i, data := range events[:len(events)-1] {
		if err := json.Unmarshal([]byte(data), &out[i]); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
	}
	return out
}

func streamRows() []row {
	return []row{
		{"1.4", "a stream's text and tokens are cumulative, and finish_reason is null until the end", nothing, nil, checkCumulative},
		{"1.4", "with incremental output a stream tells only what is new", simulator,
			func(c *enginesim.Config) { c.Streaming = enginesim.Incremental }, checkIncremental},
		{"1.4", "an error is told inside a stream of status 200", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			r := e.ok(t, "/generate", body(map[string]any{"text": "x", "rid": p.rid, "stream": true}))
			events := r.events(t)
			if len(events) != 2 || events[1] != "[DONE]" {
				t.Fatalf("%q", events)
			}
			var told struct {
				Error map[string]any `json:"error"`
			}
			if err := json.Unmarshal([]byte(events[0]), &told); err != nil {
				t.Fatal(err)
			}
			wantKeys(t, told.Error, "message", "type", "code", "retryable")
			if told.Error["code"] != 400.0 || told.Error["type"] != "invalid_request_error" || told.Error["retryable"] != false {
				t.Errorf("%v", told.Error)
			}
			e.abort(t, p.rid)
		}},
		{"1.4", "a full queue is told inside a stream", simulator, oneSlot, func(t *testing.T, e *engine) {
			p := e.hold(t)
			waits := e.background(t, "/generate", `{"text":"waits"}`)
			eventually(t, "one waits", func() bool { return e.loads(t)[0].Waiting == 1 })
			r := e.ok(t, "/generate", `{"text":"too many","stream":true}`)
			if !strings.Contains(r.body, "The request queue is full.") || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
				t.Error(r.body)
			}
			e.abort(t, p.rid)
			waits.wait(t)
		}},
		{"1.4", "a stream of a batch tells which element each event is about", nothing, nil, func(t *testing.T, e *engine) {
			last := map[int]generated{}
			for _, g := range generatedEvents(t, e.post(t, "/generate", `{"text":["a","b"],"stream":true,"sampling_params":{"max_new_tokens":5,"ignore_eos":true}}`)) {
				last[g.Index] = g
			}
			if len(last) != 2 || last[0].Meta.Completion != 5 || last[1].Meta.Completion != 5 {
				t.Errorf("%+v", last)
			}
		}},
		{"1.4", "an aborted stream ends with the reason abort", admin, nil, func(t *testing.T, e *engine) {
			rid := e.rid(t)
			p := e.background(t, "/generate", body(map[string]any{"text": "x", "rid": rid, "stream": true, "sampling_params": tokens(e.endless)}))
			eventually(t, "it runs", func() bool { return e.running(t) > 0 })
			e.abort(t, rid)
			events := generatedEvents(t, p.wait(t))
			if last := events[len(events)-1]; last.Meta.Reason["type"] != "abort" {
				t.Errorf("%+v", last.Meta)
			}
		}},
	}
}

func checkCumulative(t *testing.T, e *engine) {
	var whole generated
	var events []generated
	for n := 40; len(events) < 2; n *= 4 { // a slow machine may miss the middle of a short one
		if n > e.endless {
			t.Fatal("no stream had two events")
		}
		request := map[string]any{"text": "tell me", "sampling_params": map[string]any{"max_new_tokens": n, "ignore_eos": true, "temperature": 0}}
		whole = e.generate(t, request)
		request["stream"] = true
		events = generatedEvents(t, e.post(t, "/generate", body(request)))
	}
	for i, g := range events {
		ended := g.Meta.Reason != nil
		if ended != (i == len(events)-1) {
			t.Errorf("event %d of %d: reason %v", i, len(events), g.Meta.Reason)
		}
		if !strings.HasPrefix(whole.Text, g.Text) || len(g.OutputIDs) != g.Meta.Completion {
			t.Errorf("event %d is not a beginning of the whole: %q, %d tokens", i, g.Text, len(g.OutputIDs))
		}
	}
	if diff := cmp.Diff(whole.OutputIDs, events[len(events)-1].OutputIDs); diff != "" {
		t.Error(diff)
	}
}

func checkIncremental(t *testing.T, e *engine) {
	request := map[string]any{"text": "tell me", "sampling_params": tokens(40)}
	whole := e.generate(t, request)
	request["stream"] = true
	var text strings.Builder
	var ids []int
	for _, g := range generatedEvents(t, e.post(t, "/generate", body(request))) {
		text.WriteString(g.Text)
		ids = append(ids, g.OutputIDs...)
	}
	if text.String() != whole.Text {
		t.Errorf("%q, want %q", text.String(), whole.Text)
	}
	if diff := cmp.Diff(whole.OutputIDs, ids); diff != "" {
		t.Error(diff)
	}
}
