package enginesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// generateBody is the body of /generate, as far as the simulator looks at it.
type generateBody struct {
	RID              textOrList      `json:"rid"`
	SessionID        string          `json:"session_id"`
	Text             json.RawMessage `json:"text"`
	InputIDs         json.RawMessage `json:"input_ids"`
	InputEmbeds      json.RawMessage `json:"input_embeds"`
	SamplingParams   json.RawMessage `json:"sampling_params"`
	Stream           bool            `json:"stream"`
	ReturnLogprob    bool            `json:"return_logprob"`
	LogprobStartLen  *int            `json:"logprob_start_len"`
	TopLogprobsNum   int             `json:"top_logprobs_num"`
	SessionParams    *sessionParams  `json:"session_params"`
	RoutedDPRank     *int            `json:"routed_dp_rank"`
	DataParallelRank *int            `json:"data_parallel_rank"`
	RoutingKey       string          `json:"routing_key"`
}

// sessionParams names a session that was opened with /open_session.
type sessionParams struct {
	ID string `json:"id"`
}

// prompt is one prompt: its bytes, of which seed and turn are made, and its length in tokens.
type prompt struct {
	bytes  []byte
	tokens int
	ids    []int // only if it came as ids
}

// inquiry is a generation request of any route, read and checked.
type inquiry struct {
	plans   []plan
	prompts []prompt // of each plan
	batch   bool     // whether /generate replies with a list
	stream  bool
	logprob logprobs
}

// logprobs is what a reply tells about probabilities.
type logprobs struct {
	output, input bool
	start         int
	top           int
}

// question is what all generation routes have in common before they are read.
type question struct {
	rids     []string
	session  string
	header   http.Header
	rank     *int
	prompts  []prompt
	batch    bool
	sampling []sampling // one, or one for each prompt
	stream   bool
	logprob  logprobs
}

func (s *Server) readGenerate(r *http.Request, raw []byte) (*inquiry, error) {
	var b generateBody
	if err := decode(raw, &b); err != nil {
		return nil, err
	}
	q := question{
		rids: b.RID, session: firstOf(b.SessionID, b.SessionParams.id(), b.RoutingKey), header: r.Header,
		rank: b.RoutedDPRank, stream: b.Stream,
		logprob: logprobs{output: b.ReturnLogprob, input: b.LogprobStartLen != nil && *b.LogprobStartLen >= 0, top: b.TopLogprobsNum},
	}
	if q.logprob.input {
		q.logprob.start = *b.LogprobStartLen
	}
	if q.rank == nil {
		q.rank = b.DataParallelRank
	}
	var err error
	if q.prompts, q.batch, err = b.prompts(); err != nil {
		return nil, err
	}
	if q.sampling, err = b.sampling(len(q.prompts)); err != nil {
		return nil, err
	}
	return s.inquire(q)
}

func (p *sessionParams) id() string {
	if p == nil {
		return ""
	}
	return p.ID
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// prompts reads the one input that the body must have, and says whether it is a batch.
func (b *generateBody) prompts() (prompts []prompt, batch bool, err error) {
	given := 0
	for _, raw := range []json.RawMessage{b.Text, b.InputIDs, b.InputEmbeds} {
		if present(raw) {
			given++
		}
	}
	if given != 1 {
		return nil, false, handlerError(http.StatusBadRequest, "Either text, input_ids or input_embeds should be provided.")
	}
	switch {
	case present(b.Text):
		return textPrompts(b.Text)
	case present(b.InputIDs):
		return idPrompts(b.InputIDs)
	}
	return embedPrompts(b.InputEmbeds)
}

func textPrompts(raw json.RawMessage) (out []prompt, batch bool, err error) {
	var texts textOrList
	if err := json.Unmarshal(raw, &texts); err != nil {
		return nil, false, invalidBody("body.text: Input should be a valid string or list of strings")
	}
	for _, t := range texts {
		out = append(out, prompt{bytes: []byte(t), tokens: text.Count(t)})
	}
	return out, raw[0] == '[', nil
}

func idPrompts(raw json.RawMessage) (out []prompt, batch bool, err error) {
	var one []int
	if json.Unmarshal(raw, &one) == nil {
		return []prompt{idPrompt(one)}, false, nil
	}
	var many [][]int
	if err := json.Unmarshal(raw, &many); err != nil {
		return nil, false, invalidBody("body.input_ids: Input should be a valid list of integers or list of such lists")
	}
	for _, ids := range many {
		out = append(out, idPrompt(ids))
	}
	return out, true, nil
}

func idPrompt(ids []int) prompt {
	var b []byte
	for _, id := range ids {
		b = append(strconv.AppendInt(b, int64(id), 10), ' ')
	}
	return prompt{bytes: b, tokens: len(ids), ids: ids}
}

// embedPrompts reads embeddings: one token per vector.
func embedPrompts(raw json.RawMessage) (out []prompt, batch bool, err error) {
	var one [][]float64
	if json.Unmarshal(raw, &one) == nil {
		return []prompt{{bytes: raw, tokens: len(one)}}, false, nil
	}
	var many [][][]float64
	if err := json.Unmarshal(raw, &many); err != nil {
		return nil, false, invalidBody("body.input_embeds: Input should be a valid list of vectors")
	}
	for _, vectors := range many {
		encoded, err := json.Marshal(vectors)
		if err != nil {
			return nil, false, invalidBody("body.input_embeds: " + err.Error())
		}
		out = append(out, prompt{bytes: encoded, tokens: len(vectors)})
	}
	return out, true, nil
}

// sampling reads sampling_params: an object for all prompts or a list with one for each.
func (b *generateBody) sampling(prompts int) ([]sampling, error) {
	if !present(b.SamplingParams) {
		return []sampling{{}}, nil
	}
	var many []sampling
	if b.SamplingParams[0] == '[' {
		if err := decode(b.SamplingParams, &many); err != nil {
			return nil, err
		}
		if len(many) != prompts {
			return nil, handlerError(http.StatusBadRequest, "The length of sampling_params should be equal to the batch size.")
		}
		return many, nil
	}
	var one sampling
	if err := decode(b.SamplingParams, &one); err != nil {
		return nil, err
	}
	return []sampling{one}, nil
}

// promptHash stands for the turn of a client that does not say which it is.
func promptHash(p prompt) string {
	h := fnv.New64a()
	_, _ = h.Write(p.bytes) // a hash never fails
	return fmt.Sprintf("prompt-%016x", h.Sum64())
}
