package sglang

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"unicode"
)

var (
	// ErrReplyTooLarge is returned when an engine's reply is longer than the call allows.
	ErrReplyTooLarge = errors.New("reply is too large")
	// ErrMalformed is returned when a reply of status 200 is not what the API promises.
	ErrMalformed = errors.New("reply is malformed")
	// ErrDeclined is returned when an engine answers that it did not do what it was asked.
	ErrDeclined = errors.New("engine declined")
)

// maxMessage bounds, in runes, the engine's own words in an error: they end up in a status.
const maxMessage = 256

// StatusError is a complete reply with another status than the call expects.
type StatusError struct {
	// Route is the path that was called.
	Route string
	// Code is the HTTP status.
	Code int
	// Message is the engine's own explanation, on one line and cut to a bounded length; empty if
	// it gave none.
	Message string
}

func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s answered %d", e.Route, e.Code)
	}
	return fmt.Sprintf("%s answered %d: %s", e.Route, e.Code, e.Message)
}

// Refused reports whether err says that nobody listens at the engine's address. It proves that
// the request was not sent; it does not prove that the engine's process has ended.
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Code returns the HTTP status that err carries, 0 if it carries none.
func Code(err error) int {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code
	}
	return 0
}

// absent reports whether the engine does not know the route.
func absent(err error) bool { return Code(err) == http.StatusNotFound }

// explanation finds the engine's words in an error body. The engine has four forms of it:
// {"message"}, {"error":{"message"}}, {"error":"text"}, and plain text.
func explanation(body []byte) string {
	var reply struct {
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
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
	for _, text := range []string{reply.Message, nested.Message, reply.Detail} {
		if text != "" {
			return oneLine(text)
		}
	}
	return ""
}

// oneLine makes foreign text safe to show: no control characters, no runs of white space, bounded.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(printable), " "))
	if len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "..."
	}
	return string(runes)
}
