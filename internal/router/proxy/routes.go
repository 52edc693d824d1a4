package proxy

import "net/http"

// kind is what the proxy does with a route.
type kind uint8

// The kinds. The zero value is that of a route nobody knows.
const (
	unknownRoute kind = iota
	// leased generates, or occupies the engine as a generation does.
	leased
	// informs changes and generates nothing; any admissible backend answers it.
	informs
	// controls changes an engine, which only the operator may.
	controls
	// finishes ends a session.
	finishes
	// health says whether any backend serves. It is answered here: the engine's own answer would
	// cost a generation that nobody counts.
	health
)

// route is one path of the engine's API.
type route struct {
	kind kind
	// inputs are the members of the body that hold one or several prompts.
	inputs []string
	// samples is the member that says how many sequences each prompt is for; empty: one.
	samples string
	// rid says whether the body takes the lease's rid.
	rid ridUse
	// tells is what of the engine's reply is passed on, for a reply that has more than callers may know; nil: all.
	tells sieve
	// instead is the part of the spec that does what a control call wants.
	instead string
	// methods are those that it is called by; others are refused here. None: any, for a route that is refused anyway.
	methods []string
}

// ridUse says whether a route's body has a member rid. Where it has none the engine aborts when its
// client disconnects, and the router's abort finds nothing.
type ridUse uint8

const (
	withoutRID ridUse = iota
	takesRID
)

// audience is who may call.
type audience uint8

const (
	// anybody who reaches the socket, a page in a browser of this machine among them.
	anybody audience = iota
	// judged callers show a token, which no page of somebody else's has.
	judged
)

// methodsOf are those of a kind of route. What changes engines is no GET: any page may have a browser make one,
// by an image alone, and no check of origins sees it in every browser.
func methodsOf(k kind) []string {
	switch k {
	case leased, controls:
		return []string{http.MethodPost, http.MethodPut}
	case finishes:
		return []string{http.MethodPost}
	case informs, health:
		return []string{http.MethodGet, http.MethodHead, http.MethodPost}
	case unknownRoute:
	}
	return nil
}

// withMethods completes the routes. Engines flush for GET as well, and trainers and benchmarks call them so; where
// callers show a token they may go on to.
func withMethods(all map[string]route, callers audience) map[string]route {
	for path, r := range all {
		r.methods = methodsOf(r.kind)
		if path == "/flush_cache" && callers == judged {
			r.methods = append(r.methods, http.MethodGet)
		}
		all[path] = r
	}
	return all
}

// Parts of the spec that control calls are pointed to.
const (
	byEngineMode = "spec.engineMode of the pool pauses and continues every engine"
	byWeights    = "spec.weights of the pool updates, verifies and publishes weights"
	byDrain      = "spec.drain and spec.epoch of the pool end what runs"
	byNobody     = "the operator has no such call; make it to each engine directly, while the pool's leasing is Held"
)

// routes is the engine's API as far as the proxy passes it on. A path that is not here is not
// passed on: what nobody knows might change an engine behind the operator's back.
func routes() map[string]route {
	out := map[string]route{
		"/generate":            {kind: leased, rid: takesRID, inputs: []string{"text", "input_ids", "input_embeds"}, samples: "sampling_params"},
		"/v1/completions":      {kind: leased, rid: takesRID, inputs: []string{"prompt"}, samples: "n"},
		"/v1/chat/completions": {kind: leased, rid: takesRID, samples: "n"},
		"/v1/responses":        {kind: leased},
		"/v1/messages":         {kind: leased},
		"/encode":              {kind: leased, rid: takesRID, inputs: []string{"text", "input_ids"}},
		"/classify":            {kind: leased, rid: takesRID, inputs: []string{"text", "input_ids"}},
		"/v1/embeddings":       {kind: leased, rid: takesRID, inputs: []string{"input"}},
		"/v1/classify":         {kind: leased, inputs: []string{"input"}},
		"/v1/score":            {kind: leased, inputs: []string{"items"}},
		"/v1/rerank":           {kind: leased, inputs: []string{"documents"}},
		"/finish_session":      {kind: finishes},
	}
	add(out, route{kind: health}, "/health", "/health_generate")
	add(out, route{kind: informs}, "/", "/ping", "/v1/models", "/model_info", "/get_model_info", "/weight_version",
		"/get_weight_version", "/v1/loads", "/get_load", "/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize",
		"/v1/messages/count_tokens", "/parse_function_call", "/separate_reasoning")
	add(out, route{kind: informs, tells: aboutServer()}, "/server_info", "/get_server_info")
	add(out, route{kind: controls, instead: byEngineMode}, "/pause_generation", "/continue_generation")
	add(out, route{kind: controls, instead: byWeights}, "/update_weight_version", "/update_weights_from_disk",
		"/update_weights_from_distributed", "/update_weights_from_tensor", "/update_weights_from_ipc", "/init_weights_update_group",
		"/destroy_weights_update_group", "/weights_checker", "/begin_weight_update", "/end_weight_update", "/pull_weights",
		"/prepare_weight_update", "/commit_weight_update")
	add(out, route{kind: controls, instead: byDrain}, "/abort_request")
	add(out, route{kind: controls, instead: byNobody}, "/flush_cache", "/release_memory_occupation", "/resume_memory_occupation",
		"/open_session", "/close_session", "/load_lora_adapter", "/unload_lora_adapter", "/start_profile", "/stop_profile",
		"/set_internal_state", "/configure_logging", "/slow_down", "/get_weights_by_name")
	return out
}

func add(to map[string]route, r route, paths ...string) {
	for _, p := range paths {
		to[p] = r
	}
}
