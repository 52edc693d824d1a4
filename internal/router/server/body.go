package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/berthmaster/berthmaster/internal/router"
)

// backendRef names an incarnation in a request.
type backendRef struct {
	Name        router.BackendName `json:"name"`
	Incarnation router.Incarnation `json:"incarnation"`
}

// acquireBody asks for a lease.
type acquireBody struct {
	RequestID        router.RequestID  `json:"requestID"`
	SessionID        router.SessionID  `json:"sessionID"`
	Sender           router.SenderName `json:"sender"`
	SenderGeneration int64             `json:"senderGeneration"`
	Epoch            router.Epoch      `json:"epoch"`
	// Executions: 1 when left out.
	Executions  int64          `json:"executions"`
	GroupID     router.GroupID `json:"groupID"`
	LastBackend backendRef     `json:"lastBackend"`
	WaitSeconds int64          `json:"waitSeconds"`
	Token       string         `json:"token"`
}

func (b *acquireBody) request() router.Request {
	return router.Request{
		ID: b.RequestID, Session: b.SessionID, Sender: b.Sender, SenderGeneration: b.SenderGeneration,
		Epoch: b.Epoch, Group: b.GroupID, Executions: b.Executions,
		LastName: b.LastBackend.Name, LastIncarnation: b.LastBackend.Incarnation,
	}
}

// renewBody extends a lease.
type renewBody struct {
	Token   string `json:"token"`
	Started bool   `json:"started"`
}

// releaseBody ends a lease by its token, or, without one, spends the id of a request that
// never got a lease (outcome NotSent, with the identity).
type releaseBody struct {
	Token         string         `json:"token"`
	Outcome       router.Outcome `json:"outcome"`
	OutputTokens  int64          `json:"outputTokens"`
	PromptTokens  int64          `json:"promptTokens"`
	WeightVersion router.Version `json:"weightVersion"`

	RequestID        router.RequestID  `json:"requestID"`
	SessionID        router.SessionID  `json:"sessionID"`
	Sender           router.SenderName `json:"sender"`
	SenderGeneration int64             `json:"senderGeneration"`
	Epoch            router.Epoch      `json:"epoch"`
	Executions       int64             `json:"executions"`
	GroupID          router.GroupID    `json:"groupID"`
}

// readBody reads the body, up to limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, invalid("body", "the body is longer than "+strconv.FormatInt(limit, 10)+" bytes")
	case err != nil:
		return nil, invalid("body", "the body could not be read whole")
	}
	return raw, nil
}

// decodeBody reads one JSON object into v.
func decodeBody(raw []byte, v any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return invalid("body", "the body must be a JSON object")
	}
	return decodeStrictly(raw, v)
}

// decodeAcquire reads an acquire.
func decodeAcquire(raw []byte) (acquireBody, error) {
	body := acquireBody{Executions: 1}
	err := decodeBody(raw, &body)
	return body, err
}

// decodeStrictly refuses what v does not know, and whatever follows the value.
func decodeStrictly(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bodyRefusal(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("body", "something follows the JSON object")
	}
	return nil
}

// bodyRefusal names the field that a decoder stumbled over.
func bodyRefusal(err error) error {
	var refusal *router.Refusal
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &kind):
		return invalid(kind.Field, kind.Field+" must not be a JSON "+kind.Value)
	}
	// encoding/json has no type for this error; a test holds it to its words.
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return invalid(name, "this call has no field "+name)
	}
	return invalid("body", "the body is not JSON: "+err.Error())
}
