package sglang

import (
	"context"
	"net/http"
)

// Health asks the engine to prove that it generates. It takes about a second on an idle engine
// and may take the engine's whole check time, 20 s by default, before a failure is a 503.
//
// A paused engine fails it unless another answer of its scheduler lands in between: a caller that
// wants to tell a pause from a fault must not ask ServerInfo at the same time, only afterwards.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, route: "/health", access: open, limit: smallReply})
	return err
}

// ModelInfo is what the engine says of the model it serves.
type ModelInfo struct {
	// ModelPath is where the weights were last loaded from.
	ModelPath string
	// WeightVersion names the weights, "default" until somebody has named them. It is empty if the
	// engine does not tell.
	WeightVersion string
}

type modelInfoReply struct {
	ModelPath     string  `json:"model_path"`
	WeightVersion *string `json:"weight_version"`
}

// ModelInfo reads the model's path and weight version. It is answered by the engine's front and
// needs no scheduler, so that it works while the engine starts, and while it is paused.
func (c *Client) ModelInfo(ctx context.Context) (ModelInfo, error) {
	var reply modelInfoReply
	if err := c.get(ctx, "/model_info", "/get_model_info", &reply); err != nil {
		return ModelInfo{}, err
	}
	info := ModelInfo{ModelPath: reply.ModelPath}
	if reply.WeightVersion != nil {
		info.WeightVersion = *reply.WeightVersion
		return info, nil
	}
	version, err := c.olderWeightVersion(ctx)
	if err != nil {
		return ModelInfo{}, err
	}
	info.WeightVersion = version
	return info, nil
}

// olderWeightVersion asks the route that engines up to about 0.5.5 had instead. Today's answer
// to it is 404, which here means that the engine has no version to tell.
func (c *Client) olderWeightVersion(ctx context.Context) (string, error) {
	var reply modelInfoReply
	err := c.get(ctx, "/get_weight_version", "/weight_version", &reply)
	if absent(err) || (err == nil && reply.WeightVersion == nil) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return *reply.WeightVersion, nil
}

// ServerInfo is the part of the engine's description of itself that an operator needs.
type ServerInfo struct {
	// Version is the release of the engine.
	Version string `json:"version"`
	// WeightVersion is what the arguments say. ModelInfo is the authority.
	WeightVersion string `json:"weight_version"`
	// ServedModelName is the id under which the OpenAI routes know the model.
	ServedModelName string `json:"served_model_name"`
	// DisaggregationMode is "null", "prefill" or "decode".
	DisaggregationMode string `json:"disaggregation_mode"`
	// RadixCacheDisabled: the engine keeps no prefix, so that a later turn of a session gains nothing from
	// being there again.
	RadixCacheDisabled bool `json:"disable_radix_cache"`
	// DataParallelSize is the number of ranks, 0 if it is not told.
	DataParallelSize int64 `json:"dp_size"`
	// MaxTotalTokens is the size of the KV cache in tokens, 0 if it is not told.
	MaxTotalTokens int64 `json:"max_total_num_tokens"`
	// Ranks has one entry per data-parallel rank.
	Ranks []RankState `json:"internal_states"`
}

// RankState is what ServerInfo says about one data-parallel rank.
type RankState struct {
	// MaxRunning is how many requests the rank runs at once, 0 if it is not told.
	MaxRunning int64 `json:"effective_max_running_requests_per_dp"`
}

// ServerInfo reads the engine's arguments and asks its scheduler for its state. It is answered
// while the engine is paused, and not answered while the scheduler hangs.
func (c *Client) ServerInfo(ctx context.Context) (ServerInfo, error) {
	var reply ServerInfo
	err := c.get(ctx, "/server_info", "/get_server_info", &reply)
	return reply, err
}

// Capacity is how many executions the engine runs at once, summed over its ranks, and 0 if one
// of them does not tell.
func (s ServerInfo) Capacity() int64 {
	var sum int64
	for _, rank := range s.Ranks {
		if rank.MaxRunning <= 0 {
			return 0
		}
		sum += rank.MaxRunning
	}
	return sum
}
