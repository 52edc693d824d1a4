package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// dryRun says how far a change goes.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunClient dryRun = "client"
	dryRunServer dryRun = "server"
)

// changeFlags are what every command that changes a pool takes.
type changeFlags struct {
	dryRun  string
	output  string
	force   bool
	wait    bool
	timeout time.Duration
}

func (f *changeFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dryRun, "dry-run", string(dryRunNone), "none, client (print what would be sent) or server (let the API server judge it, and store nothing)")
	flags.StringVarP(&f.output, "output", "o", "", "print the pool instead of a message: json or yaml")
	flags.BoolVar(&f.force, "force-conflicts", false, "take over fields that another field manager holds")
	flags.BoolVar(&f.wait, "wait", false, "wait until the pool's status says that it is done, and tell how it goes")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long --wait waits; 0: as long as it takes")
	for flag, words := range map[string][]string{"dry-run": {"none", "client", "server"}, "output": {"json", "yaml"}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

func (f *changeFlags) validate() error {
	switch dryRun(f.dryRun) {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return fmt.Errorf("--dry-run: %q is none of none, client and server", f.dryRun)
	}
	if f.output != "" && f.output != "json" && f.output != "yaml" {
		return fmt.Errorf("--output: %q is none of json and yaml", f.output)
	}
	if f.wait && dryRun(f.dryRun) != dryRunNone {
		return fmt.Errorf("--wait: a dry run changes nothing that could be waited for")
	}
	if f.timeout < 0 {
		return fmt.Errorf("--timeout: %s is below 0", f.timeout)
	}
	return nil
}

// change is what one command does to a pool.
type change struct {
	entry entry
	// did is the message, as in "backend sglang-3 is being drained".
	did string
	// next are hints at what the user may want to do now, one a line.
	next []string
	// judge says how far the pool has come; nil: there is nothing to wait for.
	judge judge
	// stuck is what to do when the time is up.
	stuck string
}

// make carries a change out as the flags say.
func (e *env) make(ctx context.Context, t *target, c *change, f *changeFlags) error {
	on := respectOthers
	if f.force {
		on = takeOver
	}
	if dryRun(f.dryRun) == dryRunClient {
		return e.tell(t, f, c, c.entry.manifest(t.pool))
	}
	after, err := t.apply(ctx, &c.entry, dryRun(f.dryRun), on)
	if err != nil {
		return err
	}
	if err := e.tell(t, f, c, after); err != nil {
		return err
	}
	if dryRun(f.dryRun) != dryRunNone {
		return nil
	}
	if f.wait && c.judge != nil {
		return e.wait(ctx, t, after.Generation, c, f.timeout)
	}
	for _, hint := range c.next {
		e.notef("%s", hint)
	}
	return nil
}

// tell prints what was done, or the object.
func (e *env) tell(t *target, f *changeFlags, c *change, object runtime.Object) error {
	if f.output != "" {
		return printObject(e, f.output, object)
	}
	suffix := ""
	if d := dryRun(f.dryRun); d != dryRunNone {
		suffix = fmt.Sprintf(" (%s dry run)", d)
	}
	fmt.Fprintf(e.streams.Out, "%s: %s%s\n", t.name(), c.did, suffix)
	return nil
}

func printObject(e *env, format string, object runtime.Object) error {
	if pool, ok := object.(*v1alpha1.InferencePool); ok {
		pool.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.InferencePoolKind))
		pool.ManagedFields = nil
	}
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if format == "json" {
		printer = &printers.JSONPrinter{}
	}
	return printer.PrintObj(object, e.streams.Out)
}

// oneOf joins names for a message that a name is none of them.
func oneOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	const shown = 12
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(", and %d more", len(names)-shown)
	}
	return strings.Join(names, ", ")
}
