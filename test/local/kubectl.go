package local

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Kubectl runs the control plane's own kubectl as its administrator and returns
// what it printed.
type Kubectl struct {
	path, kubeconfig string
}

// Run runs kubectl with these arguments.
func (k Kubectl) Run(ctx context.Context, args ...string) (string, error) {
	return k.run(ctx, "", args...)
}

// Apply gives kubectl a manifest on its standard input, for `apply -f -` with
// these further arguments.
func (k Kubectl) Apply(ctx context.Context, manifest string, args ...string) (string, error) {
	return k.run(ctx, manifest, append([]string{"apply", "-f", "-"}, args...)...)
}

// Kubeconfig is the file by which it reaches the control plane.
func (k Kubectl) Kubeconfig() string { return k.kubeconfig }

// Line returns the command as a person would type it.
func (k Kubectl) Line(args ...string) string {
	return "kubectl " + strings.Join(args, " ")
}

func (k Kubectl) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", k.Line(args...), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
