package sglang

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModelInfoReadsTheVersionFromEveryRelease(t *testing.T) {
	const deprecated = `{"error":{"message":"deprecated, use '/model_info'"}}`
	cases := map[string]struct {
		replies map[string]reply
		want    ModelInfo
	}{
		"today's route": {
			map[string]reply{"/model_info": {200, `{"model_path":"/m","weight_version":"step-41","is_generation":true}`}},
			ModelInfo{ModelPath: "/m", WeightVersion: "step-41"},
		},
		"the deprecated alias": {
			map[string]reply{"/get_model_info": {200, `{"model_path":"/m","weight_version":"default"}`}},
			ModelInfo{ModelPath: "/m", WeightVersion: "default"},
		},
		"an old engine with a route of its own for the version": {
			map[string]reply{
				"/get_model_info":     {200, `{"model_path":"/m"}`},
				"/get_weight_version": {200, `{"weight_version":"v7"}`},
			},
			ModelInfo{ModelPath: "/m", WeightVersion: "v7"},
		},
		"an engine that tells no version": {
			map[string]reply{
				"/model_info":         {200, `{"model_path":"/m","weight_version":null}`},
				"/get_weight_version": {404, deprecated},
				"/weight_version":     {404, deprecated},
			},
			ModelInfo{ModelPath: "/m"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := start(t, &engine{replies: c.replies}, nil).ModelInfo(context60(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAVersionIsNotGuessedFromABrokenReply(t *testing.T) {
	cases := map[string]struct {
		replies map[string]reply
		want    error
	}{
		"not JSON":         {map[string]reply{"/model_info": {200, "<html>"}}, ErrMalformed},
		"null":             {map[string]reply{"/model_info": {200, "null"}}, ErrMalformed},
		"version a number": {map[string]reply{"/model_info": {200, `{"weight_version":41}`}}, ErrMalformed},
		"the older route is broken": {map[string]reply{
			"/model_info": {200, `{}`}, "/get_weight_version": {200, "["},
		}, ErrMalformed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := start(t, &engine{replies: c.replies}, nil).ModelInfo(context60(t))
			if !errors.Is(err, c.want) || got != (ModelInfo{}) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestServerInfoReadsWhatAnOperatorNeeds(t *testing.T) {
	fake := &engine{replies: map[string]reply{"/get_server_info": {200, `{
		"status":"ready","version":"0.5.16","weight_version":"default","served_model_name":"m","dp_size":2,
		"max_running_requests":null,"disaggregation_mode":"null","max_total_num_tokens":524288,
		"internal_states":[{"effective_max_running_requests_per_dp":256,"last_gen_throughput":1.5},
		                   {"effective_max_running_requests_per_dp":128}]}`}}}
	got, err := start(t, fake, nil).ServerInfo(context60(t))
	if err != nil {
		t.Fatal(err)
	}
	want := ServerInfo{
		Version: "0.5.16", WeightVersion: "default", ServedModelName: "m", DisaggregationMode: "null",
		DataParallelSize: 2, MaxTotalTokens: 524288, Ranks: []RankState{{256}, {128}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Capacity() != 384 {
		t.Errorf("capacity %d, want 384", got.Capacity())
	}
}

func TestServerInfoCapacityIsUnknownUnlessEveryRankTells(t *testing.T) {
	for name, ranks := range map[string][]RankState{
		"no ranks": nil, "one silent rank": {{256}, {0}}, "a negative rank": {{256}, {-1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (ServerInfo{Ranks: ranks}).Capacity(); got != 0 {
				t.Errorf("got %d, want 0", got)
			}
		})
	}
}
