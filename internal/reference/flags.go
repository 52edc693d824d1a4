package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

func flagsPage(ctx context.Context, root string) (string, error) {
	var d document
	d.heading(1, "Flags of the programs")
	d.paragraph("As the programs themselves tell them. Those of [kubectl berth](kubectl-berth.md) have their own page.")
	for _, program := range []struct{ name, what string }{
		{"manager", "The operator and the router."},
		{"sglang-sim", "The simulated engine."},
	} {
		text, err := help(ctx, root, program.name)
		if err != nil {
			return "", err
		}
		d.heading(2, program.name)
		d.paragraph(program.what)
		d.paragraph("\n```\n" + strings.TrimSpace(text) + "\n```")
	}
	return d.String(), nil
}

// help asks a program for its flags. Where it ends with an error after having told them, that is how
// Go's flag package does it.
func help(ctx context.Context, root, program string) (string, error) {
	run := exec.CommandContext(ctx, "go", "run", "./cmd/"+program, "--help")
	run.Dir = root
	out, err := run.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return "", fmt.Errorf("run %s: %w", program, err)
	}
	var kept []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimRight(line, " \n"); !strings.HasPrefix(line, "exit status") && !strings.Contains(line, "flag: help requested") {
			kept = append(kept, line)
		}
	}
	text := strings.Join(kept, "\n")
	if !strings.Contains(text, "-") {
		return "", fmt.Errorf("%s told no flags: %s", program, text)
	}
	return text, nil
}
