package enginesim

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// openAIBody is the body of the two OpenAI routes, as far as the simulator looks at it.
type openAIBody struct {
	Model               string          `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            json.RawMessage `json:"messages"`
	InputIDs            json.RawMessage `json:"input_ids"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	TopK                *int            `json:"top_k"`
	N                   int             `json:"n"`
	Seed                int64           `json:"seed"`
	Stop                textOrList      `json:"stop"`
	StopTokenIDs        []int           `json:"stop_token_ids"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	RID              textOrList     `json:"rid"`
	SessionID        string         `json:"session_id"`
	SessionParams    *sessionParams `json:"session_params"`
	RoutedDPRank     *int           `json:"routed_dp_rank"`
	DataParallelRank *int           `json:"data_parallel_rank"`
	ReturnMetaInfo   bool           `json:"return_meta_info"`
	ReturnTokenIDs   bool           `json:"return_token_ids"`
}

// defaultCompletionTokens is the limit of /v1/completions for a request that names none.
const defaultCompletionTokens = 16

// readOpenAI reads the body of a route, whose prompts the route knows how to find.
func (s *Server) readOpenAI(w http.ResponseWriter, r *http.Request, style openAIStyle) (*openAIBody, *inquiry, error) {
	if err := requireJSON(r); err != nil {
		return nil, nil, err
	}
	var b openAIBody
	if err := decodeRequest(w, r, &b); err != nil {
		return nil, nil, err
	}
	prompts, err := style.prompts(&b)
	if err != nil {
		return nil, nil, err
	}
	q, err := s.inquire(question{
		rids: b.RID, session: firstOf(b.SessionID, b.SessionParams.id()), header: r.Header,
		rank: b.rank(), prompts: prompts, batch: len(prompts) > 1,
		sampling: []sampling{b.sampling(s.defaultLimit(style, prompts))}, stream: b.Stream,
	})
	return &b, q, asOpenAI(err)
}

func (b *openAIBody) rank() *int {
	if b.RoutedDPRank != nil {
		return b.RoutedDPRank
	}
	return b.DataParallelRank
}

// defaultLimit is how many tokens a request that names no limit may generate: a few for completions, what the
// context has left for a chat.
func (s *Server) defaultLimit(style openAIStyle, prompts []prompt) int {
	if style == completionStyle {
		return defaultCompletionTokens
	}
	return max(0, s.maxTokens()-prompts[0].tokens)
}

func (b *openAIBody) sampling(limit int) sampling {
	p := sampling{
		Temperature: b.Temperature, MaxNewTokens: &limit, MinNewTokens: b.MinTokens, TopP: b.TopP, TopK: b.TopK,
		Stop: b.Stop, StopTokenIDs: b.StopTokenIDs, IgnoreEOS: b.IgnoreEOS, SamplingSeed: b.Seed, N: b.N,
	}
	switch {
	case b.MaxCompletionTokens != nil:
		p.MaxNewTokens = b.MaxCompletionTokens
	case b.MaxTokens != nil:
		p.MaxNewTokens = b.MaxTokens
	}
	return p
}

// asOpenAI gives an error the form in which the OpenAI routes write all of theirs.
func asOpenAI(err error) error {
	var api *apiError
	if !errors.As(err, &api) {
		return err
	}
	out := *api
	out.form = formObject
	return &out
}

// prompts finds what a body asks about: a prompt or several, or one chat.
func (style openAIStyle) prompts(b *openAIBody) ([]prompt, error) {
	if present(b.InputIDs) {
		prompts, _, err := idPrompts(b.InputIDs)
		return nonEmpty(prompts, err, "input_ids")
	}
	if style == chatStyle {
		return chatPrompt(b.Messages)
	}
	if !present(b.Prompt) {
		return nil, invalidBody("body.prompt: Field required")
	}
	prompts, _, err := textPrompts(b.Prompt)
	if err != nil {
		prompts, _, err = idPrompts(b.Prompt)
	}
	return nonEmpty(prompts, err, "prompt")
}

func nonEmpty(prompts []prompt, err error, field string) ([]prompt, error) {
	if err == nil && len(prompts) == 0 {
		return nil, invalidBody("body." + field + ": it is empty")
	}
	return prompts, err
}

// chatPrompt counts a conversation by its bytes; images are bytes like others.
func chatPrompt(raw json.RawMessage) ([]prompt, error) {
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if !present(raw) {
		return nil, invalidBody("body.messages: Field required")
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		return nil, invalidBody("body.messages: Input should be a valid list of messages")
	}
	if len(messages) == 0 {
		return nil, invalidBody("body.messages: Messages cannot be empty")
	}
	var said []byte
	for _, m := range messages {
		if m.Role == "" {
			return nil, invalidBody("body.messages.role: Field required")
		}
		said = append(append(append(said, m.Role...), ':'), m.Content...)
		said = append(said, '\n')
	}
	return []prompt{{bytes: said, tokens: text.Count(string(said))}}, nil
}
