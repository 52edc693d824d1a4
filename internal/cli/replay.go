package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/cli/replay"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// replayFlags are those of replay alone.
type replayFlags struct {
	sender     string
	generation int64
	prefix     string
	speed      float64
	limit      int
	wait       time.Duration
	output     string
}

func newReplay(e *env) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Play a recorded workload through the pool",
		Long: `Play a trace (.csv with the header arrival_ms,session,turn,input_tokens,output_tokens, or .jsonl in
Mooncake's form) through the pool, each turn under a lease, and say how it spread. Prompts have the
recorded length and no meaning. The engines must be reachable from here, as they are from a pod of
the cluster; their GPUs are really used.`,
		Example: `  kubectl berth replay conversations.csv --sender eval --speed 10 --limit 500`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			return e.replay(cmd.Context(), args[0], &f)
		},
	}
	e.bindPool(cmd)
	e.bindRouter(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.sender, "sender", "", "the sender as which the sessions ask; needed")
	flags.Int64Var(&f.generation, "sender-generation", 0, "its generation")
	flags.StringVar(&f.prefix, "session-prefix", "replay-", "put before the trace's session ids")
	flags.Float64Var(&f.speed, "speed", 1, "by how much the trace's time is compressed")
	flags.IntVar(&f.limit, "limit", 0, "read so many requests of the trace; 0: all")
	flags.DurationVar(&f.wait, "wait-for-lease", 5*time.Minute, "how long a turn waits for a lease")
	flags.StringVarP(&f.output, "output", "o", "", "json or yaml; empty: a table")
	_ = cmd.MarkFlagRequired("sender")
	e.complete(cmd, "sender", e.senderNames)
	return cmd
}

func (f *replayFlags) validate() error {
	if f.speed <= 0 {
		return fmt.Errorf("--speed: %g is not above 0", f.speed)
	}
	return validObject(f.output)
}

func (e *env) replay(ctx context.Context, trace string, f *replayFlags) error {
	sessions, err := workload.ReadFile(trace, f.limit)
	if err != nil {
		return fmt.Errorf("%s: %w", trace, err)
	}
	t, err := e.find(ctx)
	if err != nil {
		return err
	}
	if names := sendersOf(t.pool); !slices.Contains(names, f.sender) {
		return fmt.Errorf("pool %s has no sender %s; it has: %s", t.pool.Name, f.sender, oneOf(names))
	}
	router, closing, err := e.live(ctx, t)
	if err != nil {
		return err
	}
	defer closing()
	pool, err := client.New(client.Config{BaseURL: router.URL(), Transport: router.Transport()})
	if err != nil {
		return err
	}
	defer pool.Close()
	sum := newTally(e, workload.Requests(sessions))
	playing := replay.Config{
		Pool: pool, Sessions: sessions, Prefix: f.prefix, Sender: f.sender, Generation: f.generation,
		Epoch: currentEpoch(t.pool), Speed: f.speed, Wait: f.wait, Clock: e.clock, Each: sum.add,
	}
	if err := playing.Validate(); err != nil {
		return err
	}
	stopped := replay.Play(ctx, playing)
	if err := sum.print(f.output); err != nil {
		return err
	}
	return errors.Join(stopped, sum.verdict())
}

// tally sums a replay up.
type tally struct {
	env      *env
	turns    int
	told     time.Time
	Backends map[string]*share `json:"backends"`
	Done     int               `json:"done"`
	Failed   int               `json:"failed"`
	// First is why the first turn that failed did.
	First string `json:"firstFailure,omitempty"`
}

// share is what one backend did.
type share struct {
	Turns    int   `json:"turns"`
	Tokens   int64 `json:"outputTokens"`
	sessions map[string]struct{}
	Sessions int `json:"sessions"`
}

func newTally(e *env, turns int) *tally {
	return &tally{env: e, turns: turns, told: e.clock.Now(), Backends: map[string]*share{}}
}

// tellPeriod is how often a replay says how far it is.
const tellPeriod = 10 * time.Second

func (t *tally) add(turn replay.Turn) {
	if turn.Err != nil {
		t.Failed++
		t.First = cmp.Or(t.First, turn.Session+": "+turn.Err.Error())
	} else {
		t.Done++
		s := t.Backends[turn.Backend]
		if s == nil {
			s = &share{sessions: map[string]struct{}{}}
			t.Backends[turn.Backend] = s
		}
		s.Turns++
		s.Tokens += turn.Tokens
		s.sessions[turn.Session] = struct{}{}
		s.Sessions = len(s.sessions)
	}
	if now := t.env.clock.Now(); now.Sub(t.told) >= tellPeriod {
		t.told = now
		t.env.notef("%d of %d turns done, %d failed", t.Done, t.turns, t.Failed)
	}
}

func (t *tally) print(format string) error {
	if format != "" {
		return printValue(t.env.streams.Out, format, t)
	}
	rows := [][]cell{{{"BACKEND", bold}, {"SESSIONS", bold}, {"TURNS", bold}, {"OUTPUT TOKENS", bold}}}
	for _, name := range slices.Sorted(maps.Keys(t.Backends)) {
		s := t.Backends[name]
		rows = append(rows, []cell{{text: name}, {text: strconv.Itoa(s.Sessions)}, {text: strconv.Itoa(s.Turns)}, {text: strconv.FormatInt(s.Tokens, 10)}})
	}
	s := screenOf(t.env.streams.Out)
	(&lines{out: t.env.streams.Out, width: s.width}).table(rows, painter(s.colour))
	return nil
}

// verdict is an error unless every turn was played.
func (t *tally) verdict() error {
	if t.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d turns failed, and their sessions ended with them; the first: %s", t.Failed, t.turns, t.First)
}
