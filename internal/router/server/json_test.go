package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// acquireByTheBook is acquireBody as encoding/json reads it.
type acquireByTheBook struct {
	RequestID        router.RequestID  `json:"requestID"`
	SessionID        router.SessionID  `json:"sessionID"`
	Sender           router.SenderName `json:"sender"`
	SenderGeneration int64             `json:"senderGeneration"`
	Epoch            router.Epoch      `json:"epoch"`
	Executions       int64             `json:"executions"`
	GroupID          router.GroupID    `json:"groupID"`
	LastBackend      backendRef        `json:"lastBackend"`
	WaitSeconds      int64             `json:"waitSeconds"`
	Token            string            `json:"token"`
}

func (b *acquireByTheBook) body() acquireBody {
	return acquireBody{
		Request: router.Request{
			ID: b.RequestID, Session: b.SessionID, Sender: b.Sender, SenderGeneration: b.SenderGeneration, Epoch: b.Epoch,
			Executions: b.Executions, Group: b.GroupID, LastName: b.LastBackend.Name, LastIncarnation: b.LastBackend.Incarnation,
		},
		WaitSeconds: b.WaitSeconds, Token: []byte(b.Token),
	}
}

// seeds are bodies worth mutating.
func seeds() []string {
	return []string{
		`{"requestID":"r1","sessionID":"s1","sender":"train","senderGeneration":3,"epoch":1}`,
		` { "requestID" : "r1" , "lastBackend" : { "name" : "b0" , "incarnation" : "u/c" } , "token" : null } `,
		`{"requestID":"r\u0031\n\"\\\/","groupID":"é","executions":-0,"waitSeconds":9223372036854775807}`,
		`{"token":"x","outcome":"Succeeded","outputTokens":5,"promptTokens":0,"weightVersion":"v"}`,
		`{"requests":[{"requestID":"r1"},7,[[]],null]}`, `{"token":"x","started":true}`,
		`{}`, `[]`, `null`, `{"epoch":1e3}`, `{"epoch":01}`, `{"epoch":-}`, `{"a":1}`, `{"requestID":"r1"}{`, `{"requestID":"\ud800"}`,
	}
}

// FuzzAcquireBody: what is accepted, encoding/json accepts with the same meaning.
func FuzzAcquireBody(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	forms := newForms()
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got acquireBody
		if err := forms.decodeAcquire(&jsonReader{}, raw, &got); err != nil {
			return
		}
		want := acquireByTheBook{Executions: 1}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q is accepted, but: %v", raw, err)
		}
		got.Token = append([]byte{}, got.Token...)
		if diff := cmp.Diff(want.body(), got); diff != "" {
			t.Fatalf("%q: %s", raw, diff)
		}
	})
}

// FuzzBodies: no decoder fails but by a refusal, and each accepts JSON objects only.
func FuzzBodies(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	forms := newForms()
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, decode := range map[string]func() error{
			"acquire": func() error { return forms.decodeAcquire(&jsonReader{}, raw, &acquireBody{}) },
			"renew":   func() error { return forms.renew.decode(&jsonReader{}, raw, &renewBody{}) },
			"release": func() error { return forms.release.decode(&jsonReader{}, raw, &releaseBody{}) },
			"batch":   func() error { _, err := decodeBatch(&jsonReader{}, raw, 512); return err },
		} {
			err := decode()
			var object map[string]json.RawMessage
			if unmarshal := json.Unmarshal(raw, &object); err == nil && (unmarshal != nil || object == nil) {
				t.Fatalf("%s accepts %q: %v", name, raw, unmarshal)
			}
			var r *router.Refusal
			if err != nil && (!errors.As(err, &r) || r.Field == "" || r.Detail == "") {
				t.Fatalf("%s fails with %v", name, err)
			}
		}
	})
}

func TestNullIsAsGoodAsLeftOut(t *testing.T) {
	forms := newForms()
	var with, without acquireBody
	if err := forms.decodeAcquire(&jsonReader{}, []byte(`{"requestID":"r1","executions":null,"groupID":null,"lastBackend":null,"token":null}`), &with); err != nil {
		t.Fatal(err)
	}
	if err := forms.decodeAcquire(&jsonReader{}, []byte(`{"requestID":"r1"}`), &without); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(without, with); diff != "" || with.Executions != 1 {
		t.Error(diff, with.Executions)
	}
}

func TestWhatIsKeptOfABodyDoesNotPinIt(t *testing.T) {
	forms := newForms()
	raw := []byte(`{"requestID":"r1","sessionID":"s1"}`)
	var body acquireBody
	if err := forms.decodeAcquire(&jsonReader{}, raw, &body); err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] = 'x'
	}
	if body.ID != "r1" || body.Session != "s1" {
		t.Errorf("%q, %q", body.ID, body.Session)
	}
}
