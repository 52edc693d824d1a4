package conformance

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
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
	// Trust is how router and engines are known to the client; nothing: they are called without TLS.
	Trust Trust `json:"trust,omitzero"`
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
	// Main makes it one of the main scenarios, which are played by a real pool as well; nil: it is none.
	Main *Main `json:"main,omitempty"`
}

// Main is how a real pool is brought to where a scenario begins. Of the script it knows nothing.
type Main struct {
	// Spec is merged into that of the pool before the first step.
	Spec map[string]any `json:"spec,omitempty"`
	// Faults are armed at every engine before the first step, as /sim/faults of the simulated engine has
	// them.
	Faults []map[string]any `json:"faults,omitempty"`
	// Executions is how many the engines have begun in the end.
	Executions int `json:"executions"`
	// Leaves says in what state the pool is after the last step.
	Leaves Leaves `json:"leaves,omitempty"`
}

// Leaves is what becomes of a pool by a scenario.
type Leaves string

// The values of Leaves. The zero value means Sound.
const (
	// Sound: once the spec is as before, so is the pool.
	Sound Leaves = "sound"
	// Spoiled: it has changed for good, and another has to take its place.
	Spoiled Leaves = "spoiled"
)

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
	// Traceparent is the W3C trace context that the caller is in; empty: none.
	Traceparent string `json:"traceparent,omitempty"`
}

// Trust is how router and engines are known to a client.
type Trust struct {
	// Authority says whose certificate they show. Empty: none, they are called without TLS.
	Authority Authority `json:"authority,omitempty"`
	// ReplacedOn is a kind of call: before the first such is answered, the authority is replaced, in the
	// client's file and in what is served. Empty: it is not.
	ReplacedOn string `json:"replacedOn,omitempty"`
}

// Authority is the one behind a certificate.
type Authority string

// The values of Authority.
const (
	// Known: that of the file which the client is given.
	Known Authority = "known"
	// Another: not that one.
	Another Authority = "another"
)

// Offer is what a client is told of a run.
type Offer struct {
	// Run is its name at a desk that has several.
	Run string `json:"run,omitempty"`
	// BaseURL is the pool in the router's API.
	BaseURL string `json:"baseURL"`
	// RouterToken and EngineKey are the bearer tokens that the client has to show.
	RouterToken string `json:"routerToken"`
	EngineKey   string `json:"engineKey"`
	// Authorities is the file of those that the client trusts; empty: it talks without TLS.
	Authorities string `json:"authorities,omitempty"`
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
	// Header is added to the answer's.
	Header map[string]string `json:"header,omitempty"`
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
	// Headers demand headers of the first call of a kind; "request" is that at an engine.
	Headers map[string]map[string]string `json:"headers,omitempty"`
}

//go:embed scenarios/*.json stories/*.json
var files embed.FS

// Load returns the table, in order. It fails if a file is not what it should be.
func Load() ([]Scenario, error) { return load("scenarios/*.json") }

// LoadMain returns the main scenarios of the table, and the stories that only a real pool can play; those
// last that spoil the pool. It fails if a file is not what it should be.
func LoadMain() ([]Scenario, error) {
	all, err := load("scenarios/*.json", "stories/*.json")
	if err != nil {
		return nil, err
	}
	table := slices.DeleteFunc(all, func(s Scenario) bool { return s.Main == nil })
	slices.SortStableFunc(table, func(a, b Scenario) int { return cmp.Compare(a.Main.rank(), b.Main.rank()) })
	return table, nil
}

func (m *Main) rank() int {
	if m.Leaves == Spoiled {
		return 1
	}
	return 0
}

func load(patterns ...string) ([]Scenario, error) {
	var names []string
	for _, pattern := range patterns {
		some, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, fmt.Errorf("find scenarios: %w", err)
		}
		names = append(names, some...)
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
