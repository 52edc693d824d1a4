package enginesim

import (
	"net/http"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// openAIStyle is which of the two OpenAI routes is meant.
type openAIStyle int

const (
	completionStyle openAIStyle = iota
	chatStyle
)

func (s *Server) handleCompletions(w http.ResponseWriter, r *http.Request) error {
	return s.answerOpenAI(w, r, completionStyle)
}

func (s *Server) handleChat(w http.ResponseWriter, r *http.Request) error {
	return s.answerOpenAI(w, r, chatStyle)
}

func (s *Server) answerOpenAI(w http.ResponseWriter, r *http.Request, style openAIStyle) error {
	b, q, err := s.readOpenAI(w, r, style)
	if err != nil {
		return err
	}
	a := answer{server: s, style: style, body: b, inquiry: q, created: s.time.clock.Now().Unix()}
	if b.Stream {
		return a.stream(w, r)
	}
	x, err := s.execute(r.Context(), q.plans)
	if err != nil {
		return asOpenAI(err)
	}
	defer x.leave()
	views, err := x.wait(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, a.whole(x, views))
	return nil
}

// answer is one reply in the OpenAI form.
type answer struct {
	server  *Server
	style   openAIStyle
	body    *openAIBody
	inquiry *inquiry
	created int64
}

// envelope is what every reply and every event of one request has in common.
func (a answer) envelope(kind string) map[string]any {
	return map[string]any{
		"id": a.inquiry.plans[0].rid, "object": kind, "created": a.created, "model": a.body.Model,
	}
}

func (a answer) whole(x *execution, views []view) map[string]any {
	out := a.envelope("text_completion")
	if a.style == chatStyle {
		out["object"] = "chat.completion"
	}
	choices := make([]map[string]any, len(views))
	for i, v := range views {
		choices[i] = a.choice(i, v)
		said := x.seqs[i].wholeText(v.tokens)
		if a.style == chatStyle {
			choices[i]["message"] = map[string]any{"role": "assistant", "content": said, "reasoning_content": nil, "tool_calls": nil}
		} else {
			choices[i]["text"] = said
		}
		if a.body.ReturnTokenIDs {
			choices[i]["token_ids"] = x.seqs[i].tokens(0, v.tokens)
		}
	}
	out["choices"] = choices
	out["usage"] = a.usage(views)
	out["metadata"] = map[string]any{"weight_version": a.server.version()}
	return out
}

func (a answer) choice(i int, v view) map[string]any {
	out := map[string]any{"index": i, "logprobs": nil, "finish_reason": nil, "matched_stop": nil}
	if v.reason != nil {
		out["finish_reason"] = v.reason["type"]
		out["matched_stop"] = v.reason["matched"]
	}
	if a.body.ReturnMetaInfo {
		out["meta_info"] = a.server.metaInfo(a.inquiry.plans[i], v)
	}
	return out
}

// usage counts each prompt once, however many samples it has.
func (a answer) usage(views []view) map[string]any {
	input, output, cached := 0, 0, 0
	samples := max(1, a.body.N)
	for i, v := range views {
		output += v.tokens
		if i%samples == 0 {
			input += a.inquiry.plans[i].promptTokens
			cached += v.cached
		}
	}
	return map[string]any{
		"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output, "reasoning_tokens": 0,
		"prompt_tokens_details": map[string]any{"cached_tokens": cached},
	}
}

func (s *Server) version() (v string) {
	s.read(func(st *state) { v = st.weights.version })
	return v
}

// stream replies with events, whose text is always what is new.
func (a answer) stream(w http.ResponseWriter, r *http.Request) error {
	out := newStream(w)
	x, err := a.server.execute(r.Context(), a.inquiry.plans)
	if err != nil {
		return out.fail(err)
	}
	defer x.leave()
	views := make([]view, len(x.seqs))
	err = x.follow(r.Context(), func(in increment) error {
		views[in.index] = in.view
		return out.send(a.event(in))
	})
	if err != nil {
		return err
	}
	if a.body.StreamOptions.IncludeUsage {
		last := a.envelope(a.eventKind())
		last["choices"], last["usage"] = []any{}, a.usage(views)
		if err := out.send(last); err != nil {
			return err
		}
	}
	return out.done()
}

func (a answer) eventKind() string {
	if a.style == chatStyle {
		return "chat.completion.chunk"
	}
	return "text_completion"
}

func (a answer) event(in increment) map[string]any {
	choice := a.choice(in.index, in.view)
	if a.style == chatStyle {
		delta := map[string]any{"content": in.new}
		if in.from == 0 {
			delta["role"] = "assistant"
		}
		choice["delta"] = delta
	} else {
		choice["text"] = in.new
	}
	if a.body.ReturnTokenIDs {
		choice["token_ids"] = text.Tokens(a.inquiry.plans[in.index].seed, in.from, in.view.tokens)
	}
	event := a.envelope(a.eventKind())
	event["choices"] = []any{choice}
	if in.view.reason != nil {
		event["metadata"] = map[string]any{"weight_version": a.server.version()}
	}
	return event
}
