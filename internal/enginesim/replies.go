package enginesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
)

// maxBody bounds what a request may bring; images make bodies of tens of MiB.
const maxBody = 256 << 20

// errorForm is which of the engine's two ways an error is written.
type errorForm int

const (
	// formObject: {"object":"error","message","type","param":null,"code"}; raised HTTP errors and validation.
	formObject errorForm = iota
	// formMessage: {"error":{"message"}}; what a handler of a generation request catches.
	formMessage
)

// apiError is an error that is replied to the client.
type apiError struct {
	status  int
	form    errorForm
	kind    string
	message string
}

// Error returns the message that the client is told.
func (e *apiError) Error() string { return e.message }

func httpError(status int, message string) *apiError {
	return &apiError{status: status, form: formObject, kind: strconv.Itoa(status), message: message}
}

func invalidBody(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, form: formObject, kind: http.StatusText(http.StatusBadRequest), message: message}
}

func handlerError(status int, message string) *apiError {
	return &apiError{status: status, form: formMessage, kind: "invalid_request_error", message: message}
}

// errQueueFull: a rank has as many waiting requests as it may.
var errQueueFull = httpError(http.StatusServiceUnavailable, "The request queue is full.")

func (e *apiError) body() any {
	if e.form == formMessage {
		return map[string]any{"error": map[string]any{"message": e.message}}
	}
	return map[string]any{"object": "error", "message": e.message, "type": e.kind, "param": nil, "code": e.status}
}

// streamBody is how the error looks inside a stream, where the status has been sent already.
func (e *apiError) streamBody() any {
	kind, retryable := "invalid_request_error", false
	if e.status == http.StatusServiceUnavailable {
		kind, retryable = "service_unavailable_error", true
	}
	return map[string]any{"error": map[string]any{"message": e.message, "type": kind, "code": e.status, "retryable": retryable}}
}

// writeJSON replies with a value. A client that has gone is no concern of the engine.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("enginesim: a reply cannot be encoded: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// writeError replies with an error; one that is not for the client means that there is nobody left to tell.
func writeError(w http.ResponseWriter, err error) {
	var api *apiError
	if !errors.As(err, &api) {
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, api.status, api.body())
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, httpError(http.StatusRequestEntityTooLarge, "the request body is too large")
	case err != nil:
		return nil, fmt.Errorf("read request body: %w", err)
	}
	return body, nil
}

// decode reads a JSON object into v. Unknown fields are ignored, as the engine ignores them.
func decode(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return invalidBody("body: Field required")
	}
	err := json.Unmarshal(body, v)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return invalidBody(fmt.Sprintf("body.%s: Input should be a valid %s", wrongType.Field, wrongType.Type))
	case err != nil:
		return invalidBody("body: JSON decode error: " + err.Error())
	}
	return nil
}

// decodeRequest reads the request's body into v.
func decodeRequest(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	return decode(body, v)
}

// requireJSON is what the OpenAI routes demand of a request's headers.
func requireJSON(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return invalidBody("Unsupported Media Type: Only 'application/json' is allowed")
	}
	return nil
}
