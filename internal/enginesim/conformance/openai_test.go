package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// completion is a reply, or an event, of either OpenAI route.
type completion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Choices []struct {
		Index   int    `json:"index"`
		Text    string `json:"text"`
		Message struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"message"`
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Reason   string         `json:"finish_reason"`
		Meta     map[string]any `json:"meta_info"`
		TokenIDs []int          `json:"token_ids"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	} `json:"usage"`
	Metadata map[string]any `json:"metadata"`
}

const chatBody = `{"model":"m","messages":[{"role":"user","content":"hi there"}],"max_tokens":6,"ignore_eos":true,"temperature":0`

func openAIRows() []row {
	return []row{
		{"1.4", "a chat completion has the OpenAI form and the weight version in metadata", nothing, nil, func(t *testing.T, e *engine) {
			var c completion
			e.ok(t, "/v1/chat/completions", chatBody+`}`).decode(t, &c)
			if c.Object != "chat.completion" || len(c.Choices) != 1 || c.Choices[0].Message.Role != "assistant" ||
				c.Choices[0].Reason != "length" || c.Usage == nil || c.Usage.Completion != 6 || c.Usage.Total != c.Usage.Prompt+6 {
				t.Errorf("%+v", c)
			}
			if c.Metadata["weight_version"] != e.version(t) {
				t.Errorf("metadata %v", c.Metadata)
			}
		}},
		{"1.4", "a completion has the OpenAI form, for one prompt and for several", nothing, nil, func(t *testing.T, e *engine) {
			var c completion
			e.ok(t, "/v1/completions", `{"model":"m","prompt":["a","b"],"max_tokens":3,"n":2,"ignore_eos":true}`).decode(t, &c)
			if c.Object != "text_completion" || len(c.Choices) != 4 || c.Usage == nil || c.Usage.Completion != 12 {
				t.Errorf("%+v", c)
			}
			for i, choice := range c.Choices {
				if choice.Index != i || choice.Text == "" {
					t.Errorf("choice %d: %+v", i, choice)
				}
			}
		}},
		{"1.4", "a chat stream tells what is new, and its usage when asked", nothing, nil, checkChatStream},
		{"1.4", "the OpenAI routes take rid and tell meta_info and token ids when asked", nothing, nil, func(t *testing.T, e *engine) {
			rid := e.rid(t)
			var c completion
			e.ok(t, "/v1/chat/completions", chatBody+`,"rid":"`+rid+`","return_meta_info":true,"return_token_ids":true}`).decode(t, &c)
			if c.Choices[0].Meta["id"] != rid || len(c.Choices[0].TokenIDs) != 6 {
				t.Errorf("%+v", c.Choices[0])
			}
		}},
		{"1.4", "an aborted chat ends with the reason abort", admin, nil, func(t *testing.T, e *engine) {
			rid := e.rid(t)
			p := e.background(t, "/v1/chat/completions", strings.Replace(chatBody, `"max_tokens":6`, fmt.Sprintf(`"max_tokens":%d`, e.endless), 1)+`,"rid":"`+rid+`"}`)
			eventually(t, "it runs", func() bool { return e.running(t) > 0 })
			e.abort(t, rid)
			var c completion
			p.wait(t).decode(t, &c)
			if c.Choices[0].Reason != "abort" {
				t.Errorf("%+v", c)
			}
		}},
		{"1.4", "OpenAI errors have the error object's form", nothing, nil, func(t *testing.T, e *engine) {
			wantError(t, e.post(t, "/v1/chat/completions", `{"model":"m"}`), http.StatusBadRequest)
			wantError(t, e.post(t, "/v1/chat/completions", `{"model":"m","messages":[]}`), http.StatusBadRequest)
			wantError(t, e.post(t, "/v1/completions", `{"model":"m"}`), http.StatusBadRequest)
			wantError(t, e.post(t, "/v1/completions", `{"model":"m","prompt":"x","temperature":-1}`), http.StatusBadRequest)
		}},
		{"1.4", "a chat takes input_ids, a session and a rank", simulator, func(c *enginesim.Config) { c.DPSize = 2 }, func(t *testing.T, e *engine) {
			request := `{"model":"m","messages":[{"role":"user","content":"x"}],"input_ids":[1,2,3],"session_id":"s","routed_dp_rank":1,"max_completion_tokens":1,"return_meta_info":true}`
			var c completion
			e.ok(t, "/v1/chat/completions", request).decode(t, &c)
			if c.Usage.Prompt != 3 || c.Choices[0].Meta["dp_rank"] != 1.0 {
				t.Errorf("%+v", c)
			}
			wantStatus(t, e.post(t, "/v1/chat/completions", request, "X-Data-Parallel-Rank", "7"), http.StatusBadRequest)
		}},
		{"1.1", "a session can be opened once and closed", simulator, nil, func(t *testing.T, e *engine) {
			var id string
			e.ok(t, "/open_session", `{"capacity_of_str_len":1000}`).decode(t, &id)
			wantStatus(t, e.post(t, "/open_session", body(map[string]any{"capacity_of_str_len": 1000, "session_id": id})), http.StatusBadRequest)
			e.ok(t, "/close_session", body(map[string]any{"session_id": id}))
			e.ok(t, "/open_session", body(map[string]any{"capacity_of_str_len": 1000, "session_id": id}))
		}},
	}
}

func checkChatStream(t *testing.T, e *engine) {
	var whole completion
	e.ok(t, "/v1/chat/completions", chatBody+`}`).decode(t, &whole)
	r := e.ok(t, "/v1/chat/completions", chatBody+`,"stream":true,"stream_options":{"include_usage":true}}`)
	events := r.events(t)
	if events[len(events)-1] != "[DONE]" {
		t.Fatalf("%q", events)
	}
	var text strings.Builder
	var usage *completion
	reason := ""
	for _, data := range events[:len(events)-1] {
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatal(err)
		}
		if c.Object != "chat.completion.chunk" {
			t.Errorf("object %q", c.Object)
		}
		for _, choice := range c.Choices {
			text.WriteString(choice.Delta.Content)
			reason += choice.Reason
		}
		if c.Usage != nil {
			usage = &c
		}
	}
	if text.String() != whole.Choices[0].Message.Content || reason != "length" {
		t.Errorf("%q ended by %q, want %q", text.String(), reason, whole.Choices[0].Message.Content)
	}
	if usage == nil || usage.Usage.Completion != 6 {
		t.Errorf("usage %+v", usage)
	}
}
