package fakepool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// id is the grammar of every id in the protocol.
var id = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// identity is what requests are told apart by.
type identity struct {
	SessionID        string `json:"sessionID"`
	Sender           string `json:"sender"`
	SenderGeneration int64  `json:"senderGeneration"`
	Epoch            int64  `json:"epoch"`
	Executions       *int64 `json:"executions"`
	GroupID          string `json:"groupID"`
}

// normal is the identity as JSON, with what may be left out filled in.
func (i identity) normal() string {
	if i.Executions == nil {
		one := int64(1)
		i.Executions = &one
	}
	raw, _ := json.Marshal(i) // strings and numbers can always be encoded
	return string(raw)
}

// acquireCall, renewCall and releaseCall are every member that the router knows.
type acquireCall struct {
	RequestID string `json:"requestID"`
	identity
	LastBackend *struct {
		Name        string `json:"name"`
		Incarnation string `json:"incarnation"`
	} `json:"lastBackend"`
	WaitSeconds int64  `json:"waitSeconds"`
	Token       string `json:"token"`
}

type renewCall struct {
	Token   string `json:"token"`
	Started bool   `json:"started"`
}

type releaseCall struct {
	Token         string `json:"token"`
	Outcome       string `json:"outcome"`
	OutputTokens  int64  `json:"outputTokens"`
	PromptTokens  int64  `json:"promptTokens"`
	WeightVersion string `json:"weightVersion"`
	RequestID     string `json:"requestID"`
	identity
}

// decode reads a call as strictly as the router does.
func decode(raw []byte, into any) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, fmt.Errorf("a call that the router refuses: %w", err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("a call that is no JSON object: %w", err)
	}
	return members, nil
}

func (c acquireCall) validate() error {
	for _, v := range []string{c.RequestID, c.SessionID, c.Sender} {
		if !id.MatchString(v) {
			return fmt.Errorf("%q is no id", v)
		}
	}
	if c.Epoch < 1 || c.SenderGeneration < 0 || c.WaitSeconds < 0 || c.WaitSeconds > 600 {
		return fmt.Errorf("epoch %d, senderGeneration %d or waitSeconds %d is out of bounds", c.Epoch, c.SenderGeneration, c.WaitSeconds)
	}
	return nil
}
