package enginesim

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// The headers that the simulator reads.
const (
	headerSession = "X-Session-ID"
	headerTurn    = "X-Turn"
	headerRank    = "X-Data-Parallel-Rank"
	headerRouting = "X-Smg-Routing-Key"
	headerTrace   = "Traceparent"
)

// inquire checks a question and plans its sequences: each prompt times n.
func (s *Server) inquire(q question) (*inquiry, error) {
	rank, err := s.pickRank(q)
	if err != nil {
		return nil, err
	}
	rids, err := s.names(q)
	if err != nil {
		return nil, err
	}
	session := firstOf(q.session, q.header.Get(headerSession), q.header.Get(headerRouting))
	prefixOf := session
	if s.cfg.RadixCache == Off {
		prefixOf = ""
	}
	out := &inquiry{batch: q.batch, stream: q.stream, logprob: q.logprob}
	for i, p := range q.prompts {
		params := q.sampling[min(i, len(q.sampling)-1)]
		if err := s.checkPrompt(p, params); err != nil {
			return nil, err
		}
		for sample := range max(1, params.N) {
			out.plans = append(out.plans, s.plan(p, params, plan{
				rid: rids[i], session: session, prefixOf: prefixOf, turn: firstOf(q.header.Get(headerTurn), promptHash(p)),
				sample: len(out.plans), rank: rank, stream: q.stream, trace: q.header.Get(headerTrace),
			}, sample))
			out.prompts = append(out.prompts, p)
		}
	}
	out.batch = out.batch || len(out.plans) > 1
	name(out)
	return out, nil
}

// names returns the rid of each prompt: as given, one for all, or the engine's own.
func (s *Server) names(q question) ([]string, error) {
	n := len(q.prompts)
	if n == 0 {
		return nil, handlerError(http.StatusBadRequest, "The batch is empty.")
	}
	rids := make([]string, n)
	switch {
	case len(q.rids) == n:
		copy(rids, q.rids)
	case len(q.rids) > 1:
		return nil, handlerError(http.StatusBadRequest, "The length of rid should be equal to the batch size.")
	default:
		rid := s.cfg.NewID()
		if len(q.rids) == 1 {
			rid = q.rids[0]
		}
		for i := range rids {
			rids[i] = rid
		}
	}
	return rids, nil
}

// name gives each sequence its id: the rid where that is unique, else the rid and a number, so that an abort
// by rid reaches all of them.
func name(q *inquiry) {
	uses := map[string]int{}
	for _, p := range q.plans {
		uses[p.rid]++
	}
	for i := range q.plans {
		p := &q.plans[i]
		p.id = p.rid
		if uses[p.rid] > 1 {
			p.id = fmt.Sprintf("%s_%d", p.rid, i)
		}
	}
}

// pickRank reads which data-parallel rank was asked for; -1 is none. The header goes before the body.
func (s *Server) pickRank(q question) (int, error) {
	rank := -1
	if q.rank != nil {
		rank = *q.rank
	}
	if h := q.header.Get(headerRank); h != "" {
		n, err := strconv.Atoi(h)
		if err != nil {
			return 0, httpError(http.StatusBadRequest, fmt.Sprintf("%s must be an integer, got %q", headerRank, h))
		}
		rank = n
	}
	asked := q.rank != nil || q.header.Get(headerRank) != ""
	if asked && (rank < 0 || rank >= s.cfg.DPSize) {
		return 0, handlerError(http.StatusBadRequest, fmt.Sprintf("routed_dp_rank=%d out of range [0, %d)", rank, s.cfg.DPSize))
	}
	return rank, nil
}

// maxTokens is the length of the simulated model's context: what fits into the KV cache of one rank.
func (s *Server) maxTokens() int {
	return s.cfg.Model.KVTokens / s.cfg.Model.BlockTokens * s.cfg.Model.BlockTokens
}

func (s *Server) checkPrompt(p prompt, params sampling) error {
	if p.tokens == 0 {
		return handlerError(http.StatusBadRequest, "The input is empty.")
	}
	if limit := s.maxTokens(); p.tokens >= limit {
		return handlerError(http.StatusBadRequest, fmt.Sprintf(
			"The input (%d tokens) is longer than the model's context length (%d tokens).", p.tokens, limit))
	}
	return params.validate()
}

// plan decides what a sequence will say.
func (s *Server) plan(p prompt, params sampling, out plan, sample int) plan {
	out.promptTokens = p.tokens
	out.seed = text.Seed(p.bytes, params.SamplingSeed, sample)
	out.output, out.reason = params.length(out.seed, s.cfg.NaturalTokens, s.maxTokens()-p.tokens)
	return out
}
