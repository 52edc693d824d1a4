package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The session in which every scenario plays.
const (
	SessionID        = "session-1"
	Sender           = "train"
	SenderGeneration = 3
	Epoch            = 4
	Group            = "group-1"
)

// Step is one thing that the client is made to do.
type Step struct {
	// Call is what.
	Call Call `json:"call"`
	// RequestID is the request's id; empty: the client makes one up. With Acquire it is required.
	RequestID string `json:"requestID,omitempty"`
	// Executions is how many sequences are asked for. 0: one.
	Executions int64 `json:"executions,omitempty"`
	// WaitSeconds is how long to wait for a lease that cannot be given yet.
	WaitSeconds float64 `json:"waitSeconds,omitempty"`
	// Tokens is how many tokens are asked for. 0: 3.
	Tokens int `json:"tokens,omitempty"`
	// Session is another session than SessionID.
	Session string `json:"session,omitempty"`
	// Turn is by what engines tell this turn of the session from others. Empty: the step's number.
	Turn string `json:"turn,omitempty"`
	// As is a name under which the step goes on while others follow, until Join names it. Empty: it does not.
	As string `json:"as,omitempty"`
	// Of is the name that Join waits for.
	Of string `json:"of,omitempty"`
	// Word is what Await waits for.
	Word string `json:"word,omitempty"`
	// Does is what the owner of the pool does, or what befalls it.
	Does Act `json:"does,omitempty"`
	// Spec is merged into the pool's, with Change.
	Spec map[string]any `json:"spec,omitempty"`
	// Token is presented with Acquire; Kept: that of the lease which was kept under the same id. Empty: none.
	Token string `json:"token,omitempty"`
	// CancelOn is a word of the trace at which the caller cancels; empty: it does not.
	CancelOn string `json:"cancelOn,omitempty"`
	// StopAfterEvents is how many events of a Stream the caller takes before it leaves. 0: all.
	StopAfterEvents int `json:"stopAfterEvents,omitempty"`
	// Seconds is how long Pause lasts.
	Seconds float64 `json:"seconds,omitempty"`
	// Report is what the client must report; members that are not named may be anything. A list
	// allows each of its values.
	Report map[string]any `json:"report,omitempty"`
}

// Call is what a client can be made to do.
type Call string

// The values of Call.
const (
	// Generate posts one request and takes its whole reply.
	Generate Call = "generate"
	// Stream posts one request and takes its reply event by event.
	Stream Call = "stream"
	// Acquire asks for a lease and, if it gets one, releases it as NotSent.
	Acquire Call = "acquire"
	// AwaitFate waits until the fate of the last generate is no longer pending.
	AwaitFate Call = "awaitFate"
	// EndSession says that the trajectory is over.
	EndSession Call = "endSession"
	// Pause lets the client rest.
	Pause Call = "pause"
	// Hold asks for a lease and keeps it.
	Hold Call = "hold"
	// Join waits for a step that goes on, and reports of it.
	Join Call = "join"
	// Await waits until the run has come as far as a word.
	Await Call = "await"
	// Owner is no call of the client's: something is done to the pool.
	Owner Call = "owner"
)

// Kept, as a token, is that of the lease which was kept under the same request id.
const Kept = "kept"

// Act is something that is done to a real pool.
type Act string

// The values of Act.
const (
	// Change merges into the spec, and waits until the status is of that spec.
	Change Act = "change"
	// Drain drains the engine on which the session is, and Undrain ends that.
	Drain   Act = "drain"
	Undrain Act = "undrain"
	// Kill ends the process of the engine on which the session is, and the kubelet says so.
	Kill Act = "kill"
	// Abort lets the engines abort all that they run.
	Abort Act = "abort"
	// Disarm clears the faults of all engines.
	Disarm Act = "disarm"
	// TakeOver kills the manager and starts another.
	TakeOver Act = "takeOver"
)

// Report is what a client says of one step. Members that do not apply are left out.
type Report struct {
	// Result is the outcome of a generation; Refused by the router; Unanswered by it; Done where
	// there is nothing else to say; Error for anything else.
	Result string `json:"result"`
	// Reason is the router's word for a refusal, on whichever way it reached the caller.
	Reason string `json:"reason,omitempty"`
	// Outcome, Fate and Epoch are those of a refusal; Fate also that of a generation.
	Outcome string `json:"outcome,omitempty"`
	Fate    string `json:"fate,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	// Status is the engine's, of a complete reply that was no success.
	Status int `json:"status,omitempty"`
	// MayRepeat says of a generation without success whether the turn may be made again.
	MayRepeat *bool `json:"mayRepeat,omitempty"`
	// Released says whether the release of a generation reached the router.
	Released *bool `json:"released,omitempty"`
	// Backend, OutputTokens, WeightVersion and Mixed describe a success.
	Backend       string `json:"backend,omitempty"`
	OutputTokens  int64  `json:"outputTokens,omitempty"`
	WeightVersion string `json:"weightVersion,omitempty"`
	Mixed         *bool  `json:"mixed,omitempty"`
	// RID is what the execution was called on the engine, and At when the step had ended, in RFC 3339.
	RID string    `json:"rid,omitempty"`
	At  time.Time `json:"at,omitzero"`
	// Events is how many events of a stream reached the caller.
	Events int `json:"events,omitempty"`
	// Message is the client's own words, for whoever reads a failed test.
	Message string `json:"message,omitempty"`
}

// Differences lists what a report lacks of what its step demands.
func (s Step) Differences(got Report) ([]string, error) {
	raw, err := json.Marshal(got)
	if err != nil {
		return nil, fmt.Errorf("encode a report: %w", err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("decode a report: %w", err)
	}
	var out []string
	for _, name := range sortedKeys(s.Report) {
		if !allows(s.Report[name], members[name]) {
			out = append(out, fmt.Sprintf("the client reported %s %v, demanded is %v (%s)", name, members[name], s.Report[name], got.Message))
		}
	}
	return out, nil
}

// allows compares values as JSON decodes them; an absent member is the zero of its kind.
func allows(demanded, got any) bool {
	if choices, ok := demanded.([]any); ok {
		return slices.ContainsFunc(choices, func(c any) bool { return allows(c, got) })
	}
	if got == nil {
		return demanded == "" || demanded == 0.0 || demanded == nil
	}
	return demanded == got
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
