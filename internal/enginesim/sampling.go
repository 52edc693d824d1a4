package enginesim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// defaultMaxNewTokens is the engine's limit for a /generate request that names none.
const defaultMaxNewTokens = 128

// sampling is the part of sampling_params that shapes what the simulator says.
type sampling struct {
	Temperature  *float64   `json:"temperature"`
	MaxNewTokens *int       `json:"max_new_tokens"`
	MinNewTokens int        `json:"min_new_tokens"`
	TopP         *float64   `json:"top_p"`
	TopK         *int       `json:"top_k"`
	Stop         textOrList `json:"stop"`
	StopTokenIDs []int      `json:"stop_token_ids"`
	IgnoreEOS    bool       `json:"ignore_eos"`
	SamplingSeed int64      `json:"sampling_seed"`
	N            int        `json:"n"`
}

// textOrList is a JSON string or a list of strings.
type textOrList []string

// UnmarshalJSON accepts both forms, and null.
func (s *textOrList) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		var list []string
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		*s = list
		return nil
	}
	var one *string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*s = nil
	if one != nil {
		*s = textOrList{*one}
	}
	return nil
}

func (p sampling) validate() error {
	rules := []struct {
		broken bool
		rule   string
	}{
		{p.Temperature != nil && *p.Temperature < 0, "temperature must be non-negative"},
		{p.TopP != nil && (*p.TopP <= 0 || *p.TopP > 1), "top_p must be in (0, 1]"},
		{p.TopK != nil && *p.TopK != -1 && *p.TopK < 1, "top_k must be -1 (disable) or at least 1"},
		{p.limit() < 0, "max_new_tokens must be at least 0"},
		{p.MinNewTokens < 0 || p.MinNewTokens > p.limit(), "min_new_tokens must be in [0, max_new_tokens]"},
		{p.N < 0, "n must be at least 1"},
	}
	for _, r := range rules {
		if r.broken {
			return handlerError(http.StatusBadRequest, r.rule+".")
		}
	}
	return nil
}

func (p sampling) limit() int {
	if p.MaxNewTokens == nil {
		return defaultMaxNewTokens
	}
	return *p.MaxNewTokens
}

// length decides how many tokens a sequence of the given seed generates, at most room, and why it ends there.
func (p sampling) length(seed uint64, mean, room int) (int, finishReason) {
	limit := min(p.limit(), room)
	n, reason := limit, reasonLength(limit)
	if natural := max(p.MinNewTokens, text.NaturalLength(seed, mean)); !p.IgnoreEOS && natural < n {
		n, reason = natural, reasonStop(text.EndID)
	}
	if len(p.StopTokenIDs)+len(p.Stop) == 0 {
		return n, reason
	}
	if at, matched := p.firstStop(seed, n); at > 0 {
		return at, reasonStop(matched)
	}
	return n, reason
}

// firstStop finds the first stop token or string among the first n tokens, and returns how many tokens that
// makes and what matched.
func (p sampling) firstStop(seed uint64, n int) (int, any) {
	var said strings.Builder
	for i := range n {
		token := text.Token(seed, i)
		said.WriteString(text.Word(token))
		if i+1 < p.MinNewTokens {
			continue
		}
		for _, id := range p.StopTokenIDs {
			if id == token {
				return i + 1, id
			}
		}
		for _, stop := range p.Stop {
			if stop != "" && strings.Contains(said.String(), stop) {
				return i + 1, stop
			}
		}
	}
	return 0, nil
}
