package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// topFlags are those of top alone.
type topFlags struct {
	output   string
	sort     string
	once     bool
	interval time.Duration
}

func newTop(e *env) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the load of every backend, live",
		Long: `Show what the router counts on every backend. In a terminal the picture is renewed until Ctrl-C;
elsewhere, and with -o, it is printed once.`,
		Example: `  kubectl berth top
  kubectl berth top --sort name --interval 5s
  kubectl berth top -o json | jq '.backends[] | select(.outstanding > .capacity)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.top(cmd.Context(), &f) },
	}
	e.bindPool(cmd)
	e.bindRouter(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "wide, json or yaml; empty: a table")
	flags.StringVar(&f.sort, "sort", string(sortLoad), "load, outstanding, sessions, capacity (largest first) or name")
	flags.BoolVar(&f.once, "once", false, "print it once, in a terminal too")
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "how often the picture is renewed")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(tableFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(sortOrders(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *topFlags) validate() error {
	if _, err := parseSort(f.sort); err != nil {
		return err
	}
	if f.interval < 100*time.Millisecond {
		return errors.New("--interval: below 100ms the picture would cost more than it shows")
	}
	return validFormat(f.output)
}

func (e *env) top(ctx context.Context, f *topFlags) error {
	if err := f.validate(); err != nil {
		return err
	}
	t, err := e.find(ctx)
	if err != nil {
		return err
	}
	router, closing, err := e.live(ctx, t)
	if err != nil {
		return err
	}
	defer closing()
	order, _ := parseSort(f.sort) // it is valid
	s := screenOf(e.streams.Out)
	if f.output == "json" || f.output == "yaml" {
		pool, err := router.Pool(ctx)
		if err != nil {
			return e.explainRefusal(t, err)
		}
		return printValue(e.streams.Out, f.output, pool)
	}
	p := picture{pool: t.pool.Name, namespace: t.pool.Namespace, order: order, wide: f.output == "wide"}
	if f.once || !s.terminal {
		live, err := router.Pool(ctx)
		if err != nil {
			return e.explainRefusal(t, err)
		}
		p.live, p.at = live, e.clock.Now()
		p.draw(e.streams.Out, s.still())
		return nil
	}
	return e.follow(ctx, router, t, &p, f.interval)
}

// follow renews the picture until the user has seen enough.
func (e *env) follow(ctx context.Context, router *live.Client, t *target, p *picture, every time.Duration) error {
	fmt.Fprint(e.streams.Out, screenEnter)
	defer fmt.Fprint(e.streams.Out, screenLeave)
	ticker := e.clock.NewTicker(every)
	defer ticker.Stop()
	for {
		now, err := router.Pool(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // the user has seen enough
		case err != nil && p.live == nil:
			return e.explainRefusal(t, err)
		case err != nil:
			p.trouble = err.Error()
		default:
			p.live, p.at, p.trouble = now, e.clock.Now(), ""
		}
		fmt.Fprint(e.streams.Out, screenHome)
		p.draw(e.streams.Out, screenOf(e.streams.Out))
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// screen is what a picture is drawn on.
type screen struct {
	terminal bool
	colour   bool
	// width and height are in characters; 0: without bound.
	width, height int
}

// still is the screen for a picture that is printed and scrolls away.
func (s screen) still() screen {
	s.height = 0
	return s
}

const (
	screenEnter = "\x1b[?1049h\x1b[?25l"
	screenLeave = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H\x1b[2J"
)

// screenOf looks at what the command writes to. Colours are for terminals whose user has not refused
// them (NO_COLOR).
func screenOf(out io.Writer) screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return screen{}
	}
	s := screen{terminal: true, colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if w, h, err := term.GetSize(int(file.Fd())); err == nil {
		s.width, s.height = w, h
	}
	return s
}
