package enginesim

import (
	"net/http"
	"strings"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

func (s *Server) handleGenerate(w http.ResponseWriter, r *http.Request) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	q, err := s.readGenerate(r, raw)
	if err != nil {
		return err
	}
	if q.stream {
		return s.streamGenerate(w, r, q)
	}
	x, err := s.execute(r.Context(), q.plans)
	if err != nil {
		return err
	}
	defer x.leave()
	views, err := x.wait(r.Context())
	if err != nil {
		return err
	}
	replies := make([]map[string]any, len(views))
	for i, v := range views {
		replies[i] = s.generateReply(q, i, v, x.seqs[i].wholeText(v.tokens), 0)
	}
	if q.batch {
		writeJSON(w, http.StatusOK, replies)
	} else {
		writeJSON(w, http.StatusOK, replies[0])
	}
	return nil
}

func (q *sequence) wholeText(tokens int) string {
	var b strings.Builder
	text.Write(&b, q.seed, 0, tokens)
	return trimStop(b.String(), q.plan.reason)
}

// trimStop takes the stop string that ended a text, and what follows it, off the text. Its tokens stay.
func trimStop(said string, reason finishReason) string {
	if stop, ok := reason["matched"].(string); ok {
		if at := strings.LastIndex(said, stop); at >= 0 {
			return said[:at]
		}
	}
	return said
}

// generateReply is one sequence of a reply, or of one event of a stream; its tokens begin at index from.
func (s *Server) generateReply(q *inquiry, i int, v view, said string, from int) map[string]any {
	p := q.plans[i]
	meta := s.metaInfo(p, v)
	if v.status != seqAbortedWaiting {
		q.logprob.describe(meta, q.prompts[i], p.seed, from, v.tokens)
	}
	return map[string]any{"text": said, "output_ids": text.Tokens(p.seed, from, v.tokens), "meta_info": meta}
}

// metaInfo tells about a sequence. The weight version is the engine's at this moment, also for tokens that
// older weights made.
func (s *Server) metaInfo(p plan, v view) map[string]any {
	var version string
	s.read(func(st *state) { version = st.weights.version })
	meta := map[string]any{
		"id": p.id, "finish_reason": v.reason, "weight_version": version,
		"completion_tokens": v.tokens, "e2e_latency": v.elapsed.Seconds(),
	}
	if v.reason == nil {
		meta["finish_reason"] = nil // not a typed nil map
	}
	if v.status == seqAbortedWaiting {
		return meta
	}
	meta["prompt_tokens"] = p.promptTokens
	meta["cached_tokens"] = v.cached
	meta["num_retractions"] = v.retractions
	meta["reasoning_tokens"] = 0
	meta["response_sent_to_client_ts"] = s.time.seconds()
	if s.cfg.DPSize > 1 {
		meta["dp_rank"] = v.rank
	}
	return meta
}

// describe adds log-probabilities: of the tokens from index from up to to, and of the prompt if asked for.
func (l logprobs) describe(meta map[string]any, p prompt, seed uint64, from, to int) {
	if !l.output {
		return
	}
	out := make([][]any, 0, to-from)
	top := make([][][]any, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, []any{text.Logprob(seed, i), text.Token(seed, i), nil})
		top = append(top, l.alternatives(seed, i))
	}
	meta["output_token_logprobs"] = out
	if l.top > 0 {
		meta["output_top_logprobs"] = top
	}
	if !l.input {
		return
	}
	in := [][]any{}
	for i := l.start; i < len(p.ids); i++ {
		if i == 0 {
			in = append(in, []any{nil, p.ids[i], nil}) // nothing comes before the first token
			continue
		}
		in = append(in, []any{text.Logprob(^seed, i), p.ids[i], nil})
	}
	meta["input_token_logprobs"] = in
}

// alternatives are the likeliest tokens at a place: the one that was chosen and others below it.
func (l logprobs) alternatives(seed uint64, i int) [][]any {
	out := [][]any{}
	for k := range l.top {
		token := text.Token(seed+uint64(k)<<32, i)
		out = append(out, []any{text.Logprob(seed, i) - float64(k), token, nil})
	}
	return out
}
