package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// options is what the flags say.
type options struct {
	host      string
	port      int
	engine    enginesim.Config
	metrics   bool
	memory    bool
	increment bool
	noHealth  bool
	noRadix   bool
	noWarmup  bool
	legacy    string
	faults    []string
	log       string
	logSync   time.Duration
}

// group is a set of flags under a title in the help.
type group struct {
	title string
	set   *pflag.FlagSet
}

func defaultOptions() *options {
	return &options{
		host: "127.0.0.1", port: 30000, engine: enginesim.Config{}.WithDefaults(),
		legacy: string(enginesim.LegacyOff), logSync: execlog.DefaultSyncInterval,
	}
}

// flags declares every flag, in the groups in which the help shows them.
func (o *options) flags() []group {
	return []group{
		{"Engine, named as SGLang names them", o.engineFlags()},
		{"Timing model", o.modelFlags()},
		{"Simulated time", o.timeFlags()},
		{"Faults and older forms", o.faultFlags()},
		{"Execution log", o.logFlags()},
	}
}

func newSet(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	return set
}

func (o *options) engineFlags() *pflag.FlagSet {
	f, e := newSet("engine"), &o.engine
	e.ServedModelName = "" // follows the model's path unless it is set
	f.StringVar(&o.host, "host", o.host, "address to listen on")
	f.IntVar(&o.port, "port", o.port, "port to listen on; 0 chooses one")
	f.StringVar(&e.ModelPath, "model-path", e.ModelPath, "the weights' name at start")
	f.StringVar(&e.ServedModelName, "served-model-name", "", "id in /v1/models (default: the model's path)")
	f.StringVar(&e.WeightVersion, "weight-version", e.WeightVersion, "weight version at start")
	f.StringVar(&e.APIKey, "api-key", "", "key of ordinary requests")
	f.StringVar(&e.AdminAPIKey, "admin-api-key", "", "key of admin requests")
	f.IntVar(&e.DPSize, "dp-size", e.DPSize, "data-parallel ranks")
	f.IntVar(&e.Model.MaxRunning, "max-running-requests", e.Model.MaxRunning, "running requests per rank")
	f.IntVar(&e.MaxQueued, "max-queued-requests", 0, "waiting requests per rank before others get 503; 0: no limit")
	f.BoolVar(&o.metrics, "enable-metrics", false, "serve /metrics")
	f.BoolVar(&o.noRadix, "disable-radix-cache", false, "keep no prefix for later turns")
	f.BoolVar(&o.memory, "enable-memory-saver", false, "allow release and resume of memory")
	f.BoolVar(&o.increment, "incremental-streaming-output", false, "stream only what is new")
	f.BoolVar(&o.noHealth, "disable-health-generation", false, "/health answers without asking the scheduler")
	return f
}

func (o *options) modelFlags() *pflag.FlagSet {
	f, m := newSet("model"), &o.engine.Model
	f.IntVar(&m.PrefillTokensPerSecond, "prefill-tokens-per-second", m.PrefillTokensPerSecond, "speed of prefill")
	f.IntVar(&m.ChunkTokens, "chunked-prefill-size", m.ChunkTokens, "most prompt tokens in one prefill step")
	f.DurationVar(&m.DecodeBase, "decode-base", m.DecodeBase, "decode step, constant part")
	f.DurationVar(&m.DecodePerRequest, "decode-per-request", m.DecodePerRequest, "decode step, part of each running request")
	f.IntVar(&m.KVTokens, "max-total-tokens", m.KVTokens, "tokens in the KV cache of a rank")
	f.IntVar(&m.BlockTokens, "page-size", m.BlockTokens, "tokens in a block of the KV cache")
	f.IntVar(&m.ReserveTokens, "reserve-tokens", m.ReserveTokens, "free tokens per running request that an admission needs")
	f.IntVar(&o.engine.NaturalTokens, "natural-tokens", o.engine.NaturalTokens, "mean length of an output that ends by itself")
	return f
}

func (o *options) timeFlags() *pflag.FlagSet {
	f, e := newSet("time"), &o.engine
	f.Float64Var(&e.Speed, "speed", e.Speed, "engine time per real time; the durations here and above are engine time")
	f.DurationVar(&e.Startup, "startup-time", e.Startup, "how long health says 503 after the start")
	f.BoolVar(&o.noWarmup, "skip-server-warmup", false, "up at once, whatever --startup-time says")
	f.DurationVar(&e.UpdateTime, "update-time", e.UpdateTime, "how long a weight update takes; negative: none")
	f.DurationVar(&e.HealthPoll, "health-poll", e.HealthPoll, "least latency of /health")
	f.DurationVar(&e.HealthTimeout, "health-timeout", e.HealthTimeout, "when /health gives up")
	f.DurationVar(&e.AbortPoll, "abort-poll", e.AbortPoll, "how often a pause in mode abort aborts again")
	f.DurationVar(&e.ExitPoll, "exit-poll", e.ExitPoll, "how often a terminating engine looks whether it is idle")
	f.DurationVar(&e.Watchdog, "watchdog-timeout", e.Watchdog, "after how long a hung scheduler kills the server; negative: never")
	f.DurationVar(&e.StreamInterval, "stream-interval", e.StreamInterval, "least real time between two events of a stream")
	f.DurationVar(&e.KeepAlive, "keep-alive", e.KeepAlive, "how long, in real time, an idle connection is kept")
	return f
}

func (o *options) faultFlags() *pflag.FlagSet {
	f := newSet("faults")
	f.StringArrayVar(&o.faults, "fault", nil, `a fault in force from the start, as JSON: {"kind":"hang","paths":["/generate"]}; repeatable`)
	f.StringVar(&o.legacy, "legacy-api", o.legacy, "older endpoints: off, also, or only (without /v1/loads)")
	return f
}

func (o *options) logFlags() *pflag.FlagSet {
	f := newSet("log")
	f.StringVar(&o.engine.Name, "name", "", "the backend's name in the log (default: host-port)")
	f.StringVar(&o.log, "exec-log", "", "file to append to, or directory for NAME"+execlog.Suffix+"; empty: no log")
	f.DurationVar(&o.logSync, "exec-log-sync", o.logSync, "how often the log is fsync'd, in real time")
	return f
}

// config turns the flags into an engine's configuration, without its log.
func (o *options) config() (enginesim.Config, error) {
	c := o.engine
	if c.Name == "" {
		c.Name = fmt.Sprintf("%s-%d", o.host, o.port)
	}
	c.Metrics, c.MemorySaver = enginesim.Off, enginesim.Off
	c.HealthGeneration, c.RadixCache = onUnless(o.noHealth), onUnless(o.noRadix)
	if o.noWarmup {
		c.Startup = 0
	}
	if o.metrics {
		c.Metrics = enginesim.On
	}
	if o.memory {
		c.MemorySaver = enginesim.On
	}
	c.Streaming = enginesim.Cumulative
	if o.increment {
		c.Streaming = enginesim.Incremental
	}
	c.Legacy = enginesim.LegacyAPI(o.legacy)
	for _, raw := range o.faults {
		var f enginesim.Fault
		if err := json.Unmarshal([]byte(raw), &f); err != nil {
			return c, fmt.Errorf("--fault %s: %w", raw, err)
		}
		c.Faults = append(c.Faults, f)
	}
	if o.logSync <= 0 {
		return c, fmt.Errorf("--exec-log-sync is %v, it must be above 0", o.logSync)
	}
	return c, c.Validate()
}

// onUnless is the switch of a flag that turns something off.
func onUnless(off bool) enginesim.Switch {
	if off {
		return enginesim.Off
	}
	return enginesim.On
}

func (o *options) addr() string { return net.JoinHostPort(o.host, strconv.Itoa(o.port)) }

// openLog opens the execution log, or returns nil if there is to be none.
func (o *options) openLog(name string) (*execlog.Writer, error) {
	if o.log == "" {
		return nil, nil //nolint:nilnil // no log and no error is what was asked for
	}
	path := o.log
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, name+execlog.Suffix)
	}
	return execlog.Open(path, o.logSync)
}

func usage(w io.Writer, groups []group) error {
	_, err := fmt.Fprint(w, "Usage:\n  sglang-sim [flags]\n  sglang-sim check --log DIR|FILE... [--client-log FILE...]\n")
	for _, g := range groups {
		if err == nil {
			_, err = fmt.Fprintf(w, "\n%s:\n%s", g.title, g.set.FlagUsages())
		}
	}
	if err != nil {
		return fmt.Errorf("print usage: %w", err)
	}
	return nil
}
