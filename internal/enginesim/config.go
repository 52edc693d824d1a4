package enginesim

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

// LegacyAPI says which older forms of the engine's API are served.
type LegacyAPI string

// The values of LegacyAPI. The zero value means LegacyOff.
const (
	// LegacyOff: /get_weight_version and /get_load answer 404, as today's engine does.
	LegacyOff LegacyAPI = "off"
	// LegacyAlso: they answer, beside today's endpoints.
	LegacyAlso LegacyAPI = "also"
	// LegacyOnly: they answer and /v1/loads does not exist, as in an engine of before its time.
	LegacyOnly LegacyAPI = "only"
)

// Streaming says what the text of a stream's events is.
type Streaming string

// The values of Streaming. The zero value means Cumulative.
const (
	// Cumulative: everything generated so far.
	Cumulative Streaming = "cumulative"
	// Incremental: what is new since the event before.
	Incremental Streaming = "incremental"
)

// Switch turns a part of the engine on or off.
type Switch string

// The values of Switch. Each field says which one its zero value means.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Log takes the lines of the execution log; execlog.Writer is one.
type Log interface {
	// Append writes one record. When it fails the engine ends, since its evidence would have a hole.
	Append(record any) error
}

// Config describes one simulated engine. Every zero field means the default that it names. Durations are in
// engine time unless they say otherwise.
type Config struct {
	// Name is the backend's name in the execution log. Default "sglang-sim".
	Name string
	// Model is the timing of each data-parallel rank.
	Model model.Params
	// Speed is how much faster than real time the engine lives: arrivals excepted, everything it does takes
	// 1/Speed of its time. Default 1.
	Speed float64
	// DPSize is the number of data-parallel ranks. Default 1.
	DPSize int

	// ModelPath names the weights at start. Default "sim/model".
	ModelPath string
	// ServedModelName is the id in /v1/models. Default: ModelPath.
	ServedModelName string
	// WeightVersion is the version at start. Default "default".
	WeightVersion string
	// NaturalTokens is the mean length at which a sequence ends by itself. Default 512.
	NaturalTokens int
	// MaxQueued is how many requests may wait on a rank before others are refused with 503. 0: no limit.
	MaxQueued int

	// APIKey and AdminAPIKey protect the endpoints as the engine's flags of these names do. Empty: no key.
	APIKey, AdminAPIKey string

	// Startup is how long the engine stays Starting after it is bound. Default 0: it is up at once.
	Startup time.Duration
	// UpdateTime is how long a weight update takes once it holds the engine. Default 2 s; negative: none.
	UpdateTime time.Duration
	// HealthPoll is how often a health request looks for a sign of life, and so its least latency. Default 1 s.
	HealthPoll time.Duration
	// HealthTimeout is when a health request gives up. Default 20 s.
	HealthTimeout time.Duration
	// AbortPoll is how often a pause in mode abort aborts again what is left. Default 1 s.
	AbortPoll time.Duration
	// ExitPoll is how often a terminating engine looks whether it is done. Default 5 s.
	ExitPoll time.Duration
	// KeepAlive is how long, in real time, an idle connection is kept. Default 5 s, as the engine's server has it.
	KeepAlive time.Duration
	// Watchdog is after how long a hung scheduler kills the server. Default 300 s; negative: never.
	Watchdog time.Duration
	// StreamInterval is the least time, in real time, between two events of one stream. Default 10 ms.
	StreamInterval time.Duration

	// HealthGeneration: off lets /health answer 200 without asking the scheduler. Zero means on.
	HealthGeneration Switch
	// Metrics: on serves /metrics. Zero means off.
	Metrics Switch
	// MemorySaver: on allows release and resume of memory. Zero means off.
	MemorySaver Switch
	// RadixCache: off keeps nothing of a finished request, so that no later turn finds a prefix. Zero means on.
	RadixCache Switch
	// Streaming is the form of stream events.
	Streaming Streaming
	// Legacy says which older forms answer.
	Legacy LegacyAPI

	// Faults are in force from the start.
	Faults []Fault
	// Log receives the execution log. Nil: none is kept.
	Log Log
	// Clock is where time comes from. Default: the machine's.
	Clock clock.Clock
	// NewID makes the ids of requests that bring none, of health probes and of the process's life. Default:
	// 16 random bytes in hexadecimal.
	NewID func() string
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// WithDefaults returns c with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	orDefault(&c.Name, "sglang-sim")
	c.Model = c.Model.WithDefaults()
	orDefault(&c.Speed, 1)
	orDefault(&c.DPSize, 1)
	orDefault(&c.ModelPath, "sim/model")
	orDefault(&c.ServedModelName, c.ModelPath)
	orDefault(&c.WeightVersion, "default")
	orDefault(&c.NaturalTokens, 512)
	orDefault(&c.UpdateTime, 2*time.Second)
	orDefault(&c.HealthPoll, time.Second)
	orDefault(&c.HealthTimeout, 20*time.Second)
	orDefault(&c.AbortPoll, time.Second)
	orDefault(&c.ExitPoll, 5*time.Second)
	orDefault(&c.Watchdog, 300*time.Second)
	orDefault(&c.KeepAlive, KeepAlive)
	orDefault(&c.StreamInterval, 10*time.Millisecond)
	orDefault(&c.HealthGeneration, On)
	orDefault(&c.RadixCache, On)
	orDefault(&c.Metrics, Off)
	orDefault(&c.MemorySaver, Off)
	orDefault(&c.Streaming, Cumulative)
	orDefault(&c.Legacy, LegacyOff)
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.NewID == nil {
		c.NewID = randomID
	}
	return c
}

// Validate names the first field whose value makes no engine. Zero fields are valid.
func (c Config) Validate() error {
	c = c.WithDefaults()
	if err := c.Model.Validate(); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if c.Speed <= 0 {
		return fmt.Errorf("Speed is %v, it must be above 0", c.Speed)
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"DPSize", c.DPSize}, {"NaturalTokens", c.NaturalTokens}, {"MaxQueued", c.MaxQueued + 1}} {
		if f.value < 1 {
			return fmt.Errorf("%s is too small", f.name)
		}
	}
	if err := c.validateEnums(); err != nil {
		return err
	}
	for i, f := range c.Faults {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("fault %d: %w", i, err)
		}
	}
	return c.validateTimes()
}

func (c Config) validateEnums() error {
	for name, v := range map[string]Switch{"HealthGeneration": c.HealthGeneration, "Metrics": c.Metrics, "MemorySaver": c.MemorySaver, "RadixCache": c.RadixCache} {
		if v != On && v != Off {
			return fmt.Errorf("%s is %q, it must be on or off", name, v)
		}
	}
	if c.Streaming != Cumulative && c.Streaming != Incremental {
		return fmt.Errorf("Streaming is %q, it must be cumulative or incremental", c.Streaming)
	}
	if c.Legacy != LegacyOff && c.Legacy != LegacyAlso && c.Legacy != LegacyOnly {
		return fmt.Errorf("Legacy is %q, it must be off, also or only", c.Legacy)
	}
	return nil
}

func (c Config) validateTimes() error {
	for name, d := range map[string]time.Duration{
		"HealthPoll": c.HealthPoll, "HealthTimeout": c.HealthTimeout, "AbortPoll": c.AbortPoll,
		"ExitPoll": c.ExitPoll, "KeepAlive": c.KeepAlive, "StreamInterval": c.StreamInterval,
	} {
		if d <= 0 {
			return fmt.Errorf("%s is %v, it must be above 0", name, d)
		}
	}
	if c.Startup < 0 {
		return fmt.Errorf("Startup is %v, it must not be negative", c.Startup)
	}
	return nil
}
