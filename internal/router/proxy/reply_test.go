package proxy

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
)

func headed(kind string, length int64) *http.Response {
	return &http.Response{Header: http.Header{"Content-Type": {kind}}, ContentLength: length}
}

// sse makes a stream of these events.
func sse(events ...string) string {
	var out strings.Builder
	for _, e := range events {
		out.WriteString("data: " + e + "\n\n")
	}
	return out.String()
}

func TestAReplyTellsHowItEndedAndWhatItCost(t *testing.T) {
	const stream, json = "text/event-stream; charset=utf-8", "application/json"
	cases := map[string]struct {
		kind, text string
		want       router.Outcome
		reply      router.Reply
	}{
		"generate": {json, `{"text":"\"abort\"","meta_info":{"finish_reason":{"type":"stop"},"prompt_tokens":7,"completion_tokens":3,"weight_version":"v1"}}`,
			router.Succeeded, router.Reply{Version: "v1", PromptTokens: 7, OutputTokens: 3}},
		"generate, a batch": {json, `[{"meta_info":{"prompt_tokens":7,"completion_tokens":3,"weight_version":"v1"}},{"meta_info":{"prompt_tokens":9,"completion_tokens":4}}]`,
			router.Succeeded, router.Reply{Version: "v1", PromptTokens: 9, OutputTokens: 7}},
		"generate, a batch with an abort": {json, `[{"meta_info":{"finish_reason":{"type":"stop"}}},{"meta_info":{"finish_reason":{"type":"abort","message":"Aborted"}}}]`,
			router.Aborted, router.Reply{}},
		"generate, aborted while it waited": {json, `{"meta_info":{"id":"r","finish_reason":{"type":"abort"},"weight_version":"v2","completion_tokens":0}}`,
			router.Aborted, router.Reply{Version: "v2"}},
		"a chat": {json, `{"id":"c","object":"chat.completion","choices":[{"message":{"content":"finish_reason","error":"x"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2},"metadata":{"weight_version":"v3"}}`,
			router.Succeeded, router.Reply{Version: "v3", PromptTokens: 5, OutputTokens: 2}},
		"a chat, aborted":       {json, `{"choices":[{"finish_reason":"stop"},{"finish_reason":"abort"}]}`, router.Aborted, router.Reply{}},
		"a chat that says null": {json, `{"error":null,"choices":[]}`, router.Succeeded, router.Reply{}},
		"an error":              {json, `{"error":{"message":"x"}}`, router.Ambiguous, router.Reply{}},
		"half a document":       {json, `{"choices":[{"finish_reason":"stop"}]`, router.Ambiguous, router.Reply{}},
		"a stream of samples": {stream, sse(`{"index":0,"meta_info":{"completion_tokens":1,"finish_reason":null}}`, `{"meta_info":{"completion_tokens":2,"prompt_tokens":6},"index":1}`,
			`{"index":0,"meta_info":{"completion_tokens":4,"finish_reason":{"type":"stop"}}}`, "[DONE]"),
			router.Succeeded, router.Reply{PromptTokens: 6, OutputTokens: 6}},
		"a stream of a chat": {stream, sse(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":9}}`, "[DONE]"),
			router.Succeeded, router.Reply{PromptTokens: 4, OutputTokens: 9}},
		"a stream with an abort":         {stream, sse(`{"choices":[{"finish_reason":"abort"}]}`, "[DONE]"), router.Aborted, router.Reply{}},
		"a stream with an error":         {stream, sse(`{"choices":[{"finish_reason":"stop"}]}`, `{"error":{"message":"x"}}`, "[DONE]"), router.Ambiguous, router.Reply{}},
		"a stream that speaks of a mark": {stream, sse(`{"text":"data: [DONE]\n\n"}`), router.Ambiguous, router.Reply{}},
		"a stream with another mark":     {stream, sse(`{"text":"a"}`, "[DONE", "[DONE]]"), router.Ambiguous, router.Reply{}},
		"a stream with other lines":      {stream, ": hello\r\nevent: x\r\nid: [DONE]\r\n\r\ndata:[DONE]\r\n\r\n", router.Succeeded, router.Reply{}},
		"a stream of messages":           {stream, "event: message_stop\n" + sse(`{"type":"message_stop"}`), router.Succeeded, router.Reply{}},
		"a stream of a response":         {stream, sse(`{"type":"response.created"}`, `{"type":"response.completed"}`), router.Succeeded, router.Reply{}},
		"a stream of a failed response":  {stream, sse(`{"type":"response.failed"}`), router.Ambiguous, router.Reply{}},
		"a stream of nonsense":           {stream, sse(`{]`, "nonsense", "[DONE]"), router.Succeeded, router.Reply{}},
		"nonsense":                       {json, `nonsense {`, router.Succeeded, router.Reply{}}, // framed as whole, and not ours to judge
		"sound":                          {"audio/wav", "RIFF", router.Succeeded, router.Reply{}},
		"figures without sense":          {json, `{"usage":{"prompt_tokens":-4,"completion_tokens":99999999999999999}}`, router.Succeeded, router.Reply{OutputTokens: 1 << 40}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := newReply(headed(c.kind, int64(len(c.text))))
				for rest := c.text; rest != ""; {
					n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
					_, _ = r.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				r.atEnd()
				if got := r.outcome(); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				got := r.summary()
				if got != c.reply {
					t.Errorf("got %+v, want %+v", got, c.reply)
				}
				if err := got.Validate(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAReplyWithoutAnEndOfItsOwnIsNotTakenForWhole(t *testing.T) {
	r := newReply(headed("audio/wav", -1))
	_, _ = r.Write([]byte("RIFF"))
	if r.atEnd(); r.outcome() != router.Ambiguous {
		t.Errorf("got %s", r.outcome())
	}
}

func FuzzReplyCutsItsPiecesAlike(f *testing.F) {
	f.Add(sse(`{"choices":[{"finish_reason":"abort"}]}`, "[DONE]"), 3)
	f.Add("data:\ndata: [DONE]\r\n", 1)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		if piece < 1 {
			return
		}
		whole, parts := newReply(headed("text/event-stream", -1)), newReply(headed("text/event-stream", -1))
		_, _ = whole.Write([]byte(text))
		for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
			_, _ = parts.Write([]byte(rest[:min(piece, len(rest))]))
		}
		if whole.outcome() != parts.outcome() || whole.summary() != parts.summary() {
			t.Errorf("%q in pieces of %d: %s and %s", text, piece, whole.outcome(), parts.outcome())
		}
	})
}
