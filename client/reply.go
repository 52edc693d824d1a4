package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// verdict is what became of a written request, and what to report of it.
type verdict struct {
	outcome       Outcome
	status        int    // of a complete reply
	body          []byte // of a complete reply; of a stream its last event
	message       string // the engine's explanation
	weightVersion string
	outputTokens  int64
	promptTokens  int64
	err           error
}

// engineReply is the part of the engine's replies that says how a request ended: one sequence of
// /generate, or the whole of an OpenAI route.
type engineReply struct {
	Meta *struct {
		FinishReason     finish `json:"finish_reason"`
		WeightVersion    string `json:"weight_version"`
		CompletionTokens int64  `json:"completion_tokens"`
		PromptTokens     int64  `json:"prompt_tokens"`
	} `json:"meta_info"`
	Choices []struct {
		FinishReason finish `json:"finish_reason"`
	} `json:"choices"`
	Metadata struct {
		WeightVersion string `json:"weight_version"`
	} `json:"metadata"`
	Usage struct {
		CompletionTokens int64 `json:"completion_tokens"`
		PromptTokens     int64 `json:"prompt_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// finish is why a sequence ended: an object on /generate, a word on the OpenAI routes, null while
// it has not.
type finish struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (f *finish) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Type)
	}
	type plain finish
	return json.Unmarshal(data, (*plain)(f))
}

const abortType = "abort"

// judge says what a complete reply means. It follows the short list of statuses after which
// nothing runs; whatever is not on it is Ambiguous.
func judge(status int, body []byte) verdict {
	v := verdict{outcome: Ambiguous, status: status, body: body}
	if status == http.StatusOK {
		return v.completed()
	}
	v.message = explanation(body)
	if rejects(status, v.message) {
		v.outcome = Rejected
	}
	return v
}

// rejects reports whether status and message are on the list of refusals.
func rejects(status int, message string) bool {
	lower := strings.ToLower(message)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest:
		// A duplicate rid says that the request is running already, by whoever sent it.
		return message != "" && !strings.Contains(lower, "duplicate") && !strings.Contains(lower, "request id")
	case http.StatusServiceUnavailable:
		return strings.Contains(lower, "queue is full")
	}
	return false
}

// completed reads the engine's account of a reply of status 200, which may be a list.
func (v verdict) completed() verdict {
	var replies []engineReply
	if json.Unmarshal(v.body, &replies) != nil {
		replies = make([]engineReply, 1)
		if json.Unmarshal(v.body, &replies[0]) != nil {
			v.err = errors.New("the engine's reply is not what it should be")
			return v
		}
	}
	v.outcome = Succeeded
	for _, reply := range replies {
		v = v.with(reply)
	}
	return v
}

// with adds one sequence's account. An abort of any is an abort of the request; an error in a
// reply of status 200 leaves it open what ran.
func (v verdict) with(reply engineReply) verdict {
	var reasons []finish
	if m := reply.Meta; m != nil {
		reasons = append(reasons, m.FinishReason)
		v.weightVersion = or(m.WeightVersion, v.weightVersion)
		v.outputTokens += m.CompletionTokens
		v.promptTokens += m.PromptTokens
	}
	for _, choice := range reply.Choices {
		reasons = append(reasons, choice.FinishReason)
	}
	v.weightVersion = or(reply.Metadata.WeightVersion, v.weightVersion)
	v.outputTokens += reply.Usage.CompletionTokens
	v.promptTokens += reply.Usage.PromptTokens
	for _, reason := range reasons {
		if reason.Type == abortType && v.outcome == Succeeded {
			v.outcome, v.message = Aborted, oneLine(reason.Message)
		}
	}
	if len(reply.Error) > 0 && string(reply.Error) != "null" {
		v.outcome, v.message = Ambiguous, explanation(v.body)
	}
	return v
}

// explanation finds the engine's words in an error body. It has four forms: {"message"},
// {"error":{"message"}}, {"error":"text"}, and plain text.
func explanation(body []byte) string {
	var reply struct {
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return oneLine(string(body))
	}
	var nested struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(reply.Error, &nested) != nil {
		_ = json.Unmarshal(reply.Error, &nested.Message) // neither form: stays empty
	}
	return oneLine(or(or(reply.Message, nested.Message), string(reply.Detail)))
}
