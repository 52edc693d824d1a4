package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/berthmaster/berthmaster/internal/cli"
	"github.com/berthmaster/berthmaster/internal/cli/doctor"
)

func commandsPage(context.Context, string) (string, error) {
	root := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	root.InitDefaultCompletionCmd()
	var d document
	d.heading(1, "kubectl berth")
	d.paragraph(root.Long)
	d.paragraph("\nEvery command takes kubectl's own flags (`--kubeconfig`, `--context`, `--namespace`, `--as`, ...), here or before its name.")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			writeCommand(&d, c)
		}
	}
	return d.String(), nil
}

func writeCommand(d *document, c *cobra.Command) {
	if inner := c.Commands(); len(inner) > 0 && c.Name() != "completion" {
		for _, sub := range inner {
			writeCommand(d, sub)
		}
		return
	}
	d.heading(2, code("kubectl berth "+strings.TrimPrefix(c.Parent().CommandPath()+" ", "kubectl berth ")+c.Use))
	text := c.Long
	if text == "" || c.Name() == "completion" {
		text = c.Short + "."
	}
	d.paragraph(text)
	if c.Example != "" {
		d.paragraph("\n```sh\n" + strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n") + "\n```")
	}
	var rows [][]string
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { rows = append(rows, flagRow(f)) })
	if len(rows) > 0 {
		d.paragraph("")
		d.table([]string{"flag", "default", "meaning"}, rows)
	}
}

func flagRow(f *pflag.Flag) []string {
	name := code("--" + f.Name)
	if f.Shorthand != "" {
		name = code("-"+f.Shorthand) + ", " + name
	}
	return []string{name, code(f.DefValue), f.Usage}
}

// doctorPage lists what `kubectl berth doctor` looks for.
func doctorPage(context.Context, string) (string, error) {
	var d document
	d.heading(1, "Faults that kubectl berth doctor finds")
	d.paragraph("The words are stable: programs may decide by `fault` in `-o json`.")
	d.paragraph("")
	var rows [][]string
	for _, k := range doctor.Known() {
		rows = append(rows, []string{code(string(k.Fault)), k.Means})
	}
	d.table([]string{"fault", "meaning"}, rows)
	return d.String(), nil
}
