package conformance

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
)

// Scenario is one row of the table.
type Scenario struct {
	// Name identifies it; words joined by hyphens.
	Name string `json:"name"`
	// Rules are those of docs/client-conformance.md that it stands for.
	Rules []string `json:"rules"`
	// Says is what it claims, in one sentence.
	Says string `json:"says"`
	// Client is how the client is to be configured.
	Client ClientSettings `json:"client,omitzero"`
	// Grants says where the leases are, in order; the last one stands for all that follow. Empty:
	// every lease is on engine a.
	Grants []Grant `json:"grants,omitempty"`
	// Router is what the router answers, by kind of call (acquire, renew, release, forgo, end), in
	// order; what goes beyond is answered as usual.
	Router map[string][]Answer `json:"router,omitempty"`
	// Engines are the engines by name; one that is named by no key is in order.
	Engines map[string]Engine `json:"engines,omitempty"`
	// Do is what the client is made to do.
	Do []Step `json:"do"`
	// Wire is what must have been seen on the wire, beyond what holds for every scenario.
	Wire Wire `json:"wire,omitzero"`
}

// ClientSettings configure a client. Zero is the client's default, with the exception of Attempts.
type ClientSettings struct {
	// Attempts is how many requests one generate may make while each ends NotSent. 0: 1.
	Attempts int `json:"attempts,omitempty"`
	// RetryForSeconds is how long a call to the router is repeated while its answers are lost.
	RetryForSeconds float64 `json:"retryForSeconds,omitempty"`
	// CallTimeoutSeconds bounds one call to the router.
	CallTimeoutSeconds float64 `json:"callTimeoutSeconds,omitempty"`
	// MaxReplyBytes bounds an engine's reply.
	MaxReplyBytes int64 `json:"maxReplyBytes,omitempty"`
	// LastBackend is where the session was before; empty: not known. Its incarnation is its name
	// followed by /1.
	LastBackend string `json:"lastBackend,omitempty"`
}

// Grant is a lease that the router will give.
type Grant struct {
	// Engine is the name of the engine.
	Engine string `json:"engine"`
	// TTLSeconds and StartSeconds are those of the lease. 0: 120 and 30.
	TTLSeconds   int64 `json:"ttlSeconds,omitempty"`
	StartSeconds int64 `json:"startSeconds,omitempty"`
	// Fields replace those of the answer.
	Fields map[string]any `json:"fields,omitempty"`
}

// Answer is what the router does with one call, after it has taken note of it.
type Answer struct {
	// Times is how many calls it answers. 0: one; negative: all that follow.
	Times int `json:"times,omitempty"`
	// DelaySeconds and Until hold it back: for so long, and until the trace shows so much.
	DelaySeconds float64 `json:"delaySeconds,omitempty"`
	Until        string  `json:"until,omitempty"`
	// Fault, if there is one, takes the place of the answer.
	Fault Fault `json:"fault,omitempty"`
	// Status and Reason make it a refusal, Status without Reason one of somebody in between. 0: as
	// usual.
	Status int    `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// RetryAfterSeconds is the header of that name. 0: none.
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
	// Fields are added to the body, or replace some of it.
	Fields map[string]any `json:"fields,omitempty"`
	// Raw is the body as it is, with Status; it is no JSON.
	Raw string `json:"raw,omitempty"`
}

// Fault is how a router's answer fails to arrive.
type Fault string

// The faults of answers.
const (
	// FaultReset: the connection is reset instead.
	FaultReset Fault = "reset"
	// FaultHalf: the connection is closed half way through the body.
	FaultHalf Fault = "half"
	// FaultHang: nothing comes until the client hangs up.
	FaultHang Fault = "hang"
)

// Engine is what one engine does.
type Engine struct {
	// Port is open, or closed: connections are refused. Empty: open.
	Port Port `json:"port,omitempty"`
	// Replies are for its requests, in order; what goes beyond is generated in order.
	Replies []Reply `json:"replies,omitempty"`
}

// Port says whether an engine can be connected to.
type Port string

// The values of Port. The zero value means Open.
const (
	Open   Port = "open"
	Closed Port = "closed"
)

// Reply is what an engine does with one request.
type Reply struct {
	// Times is how many requests it is for. 0: one; negative: all that follow.
	Times int `json:"times,omitempty"`
	// Read is how many bytes of the request are read; nil: all.
	Read *int `json:"read,omitempty"`
	// DelaySeconds and Until hold the reply back: for so long, and until the trace shows so much.
	DelaySeconds float64 `json:"delaySeconds,omitempty"`
	Until        string  `json:"until,omitempty"`
	// Status is that of the reply. 0: 200.
	Status int `json:"status,omitempty"`
	// Header is added to that of the reply.
	Header map[string]string `json:"header,omitempty"`
	// Body is sent as it is if it is a string, as JSON if it is anything else; nil: a reply in order.
	Body any `json:"body,omitempty"`
	// Events make the reply a stream: each as it is if it is a string, else as JSON.
	Events []any `json:"events,omitempty"`
	// Raw takes the place of the whole reply, status line included.
	Raw *string `json:"raw,omitempty"`
	// Cut is how many bytes of the reply are sent, the status line included; nil: all. Negative: all
	// but so many.
	Cut *int `json:"cut,omitempty"`
	// Then is what becomes of the connection. Empty: it is kept open.
	Then Ending `json:"then,omitempty"`
}

// Ending is what an engine does with a connection after its reply.
type Ending string

// The values of Ending. The zero value means Keep.
const (
	// Keep: it waits for another request.
	Keep Ending = "keep"
	// Close: it ends the connection in order.
	Close Ending = "close"
	// Reset: it resets the connection.
	Reset Ending = "reset"
)

// Wire is what must have been seen. Words of the trace are in package fakepool.
type Wire struct {
	// Count bounds how often each word is in the trace, from and to; a to below 0 is no bound.
	Count map[string][2]int `json:"count,omitempty"`
	// Order is words that must be in the trace in this order, others between them allowed.
	Order []string `json:"order,omitempty"`
	// Apart is how many seconds must lie between the first two of a word, at least.
	Apart map[string]float64 `json:"apart,omitempty"`
	// Bodies demand members of the first call's body, by kind of call.
	Bodies map[string]map[string]any `json:"bodies,omitempty"`
}

//go:embed scenarios/*.json
var files embed.FS

// Load returns the table, in order. It fails if a file is not what it should be.
func Load() ([]Scenario, error) {
	names, err := fs.Glob(files, "scenarios/*.json")
	if err != nil {
		return nil, fmt.Errorf("find scenarios: %w", err)
	}
	var table []Scenario
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read scenarios: %w", err)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		var some []Scenario
		if err := decoder.Decode(&some); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		table = append(table, some...)
	}
	return table, nil
}
