// Command sglang-sim is a simulated SGLang server, and the checker of the execution logs that it keeps.
//
//	sglang-sim --port 30000 --speed 60 --exec-log logs/
//	sglang-sim check --log logs/ --client-log client.jsonl
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code := 0
	root := newServeCommand(stdout, &code)
	root.AddCommand(newCheckCommand(stdout, &code))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, "sglang-sim:", err) // there is nowhere else to tell it
		return 2
	}
	return code
}

func newServeCommand(stdout io.Writer, code *int) *cobra.Command {
	o := defaultOptions()
	groups := o.flags()
	cmd := &cobra.Command{
		Use:           "sglang-sim",
		Short:         "A simulated SGLang server: its HTTP API and its timing, without a GPU",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signals := make(chan os.Signal, 2)
			signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
			defer signal.Stop(signals)
			var err error
			*code, err = serve(cmd.Context(), o, stdout, signals)
			return err
		},
	}
	for _, g := range groups {
		cmd.Flags().AddFlagSet(g.set)
	}
	cmd.SetUsageFunc(func(c *cobra.Command) error { return usage(c.OutOrStdout(), groups) })
	return cmd
}
