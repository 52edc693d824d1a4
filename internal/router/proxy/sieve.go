package proxy

import (
	"bytes"
	"encoding/json"
)

// sieve is what of a document is passed on: members by their names, and for each of them what of it is. A nil
// sieve passes a string, a number, a boolean or null, and nothing that has members of its own.
type sieve map[string]sieve

// of is the part of a text that the sieve lets through; false: the text is no JSON object.
func (s sieve) of(text []byte) ([]byte, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return nil, false
	}
	return s.pass(text)
}

// pass returns what the sieve lets through of a document, or of each object in a list; false: nothing. It goes no
// deeper than the sieve does, whatever the document.
func (s sieve) pass(document json.RawMessage) (json.RawMessage, bool) {
	var through any
	switch kind := document[0]; {
	case kind == '{' && s != nil:
		through = s.members(document)
	case kind == '[' && s != nil:
		through = s.elements(document)
	case kind == '{' || kind == '[':
		return nil, false
	default:
		return document, s == nil
	}
	out, err := json.Marshal(through)
	return out, err == nil
}

func (s sieve) members(object json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil {
		return nil
	}
	out := make(map[string]json.RawMessage, len(s))
	for name, below := range s {
		if value, there := all[name]; there {
			if through, ok := below.pass(value); ok {
				out[name] = through
			}
		}
	}
	return out
}

// elements passes the objects of a list. A list in it is left out: it could have others in it without end.
func (s sieve) elements(list json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(list, &all) != nil {
		return nil
	}
	out := make([]json.RawMessage, 0, len(all))
	for _, element := range all {
		if element[0] != '{' {
			continue
		}
		if through, ok := s.pass(element); ok {
			out = append(out, through)
		}
	}
	return out
}

// flat is a sieve of members without any of their own.
func flat(names ...string) sieve {
	out := make(sieve, len(names))
	for _, name := range names {
		out[name] = nil
	}
	return out
}

// aboutServer is what callers are told of /server_info. An engine answers it with every argument that it was
// started with, its keys and the password of its TLS key among them, and once more for each data-parallel rank;
// the next release may have secrets under names that nobody knows yet. So this is a list of what may be told: what
// the model is, how large the engine is, how it speculates and how fast it is, which is what routers, trainers and
// benchmarks read. Addresses, paths of files other than the model's, and settings that hold others stay out.
func aboutServer() sieve {
	rank := flat("effective_max_running_requests_per_dp", "last_gen_throughput", "avg_spec_accept_length", "world_size",
		"dp_rank", "tp_rank", "pp_rank", "moe_ep_rank")
	rank["memory_usage"] = flat("weight", "weight_gb", "kvcache", "kv_cache_gb", "token_capacity", "graph", "graph_gb")
	out := flat(
		"version", "status", "device",
		"model_path", "tokenizer_path", "skip_tokenizer_init", "served_model_name", "weight_version", "revision", "is_embedding",
		"load_format", "dtype", "quantization", "kv_cache_dtype", "context_length", "reasoning_parser", "tool_call_parser", "sampling_defaults",
		"tp_size", "pp_size", "dp_size", "ep_size", "nnodes", "enable_dp_attention", "load_balance_method", "disaggregation_mode",
		"disaggregation_bootstrap_port",
		"max_running_requests", "max_queued_requests", "max_total_tokens", "max_total_num_tokens", "max_prefill_tokens", "max_req_input_len",
		"chunked_prefill_size", "page_size", "mem_fraction_static", "schedule_policy", "schedule_conservativeness", "stream_interval",
		"disable_radix_cache", "enable_hierarchical_cache", "enable_memory_saver", "enable_metrics", "enable_lora", "max_loras_per_batch",
		"incremental_streaming_output", "enable_deterministic_inference", "attention_backend", "sampling_backend", "grammar_backend",
		"speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
	)
	out["internal_states"] = rank
	return out
}
