package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// drainFlags are those of drain alone.
type drainFlags struct {
	sessions string
	deadline time.Duration
	abort    bool
}

func newDrain(e *env) *cobra.Command {
	var common changeFlags
	var f drainFlags
	cmd := &cobra.Command{
		Use:   "drain BACKEND",
		Short: "Take a backend out of service without disturbing what runs on it",
		Long: `Take a backend out of service. It takes no new session; what runs there goes on, and its sessions
move at their next turn. It is drained once the status says so: nothing is counted there, and
nothing can be running.`,
		Example: `  kubectl berth drain sglang-3 --wait
  kubectl berth drain sglang-3 --deadline 10m --abort-at-deadline --wait
  kubectl berth drain sglang-3 --sessions Keep`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(e.backendNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return drainOf(t.pool, args[0], &f)
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.sessions, "sessions", string(v1alpha1.DrainMove), "what becomes of its sessions: Move (another home at their next turn) or Keep (they end where they live)")
	flags.DurationVar(&f.deadline, "deadline", 0, "how long the drain may take; 0: no deadline")
	flags.BoolVar(&f.abort, "abort-at-deadline", false, "at the deadline, abort what still runs there instead of only reporting it")
	_ = cmd.RegisterFlagCompletionFunc("sessions", cobra.FixedCompletions([]string{"Move", "Keep"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *drainFlags) validate() error {
	switch {
	case f.sessions != string(v1alpha1.DrainMove) && f.sessions != string(v1alpha1.DrainKeep):
		return fmt.Errorf("--sessions: %q is none of Move and Keep", f.sessions)
	case f.deadline < 0 || f.deadline%time.Second != 0:
		return fmt.Errorf("--deadline: %s is no whole number of seconds", f.deadline)
	case f.abort && f.deadline == 0:
		return fmt.Errorf("--abort-at-deadline needs --deadline")
	}
	return nil
}

// steer finds the pool, has plan make up the change, and makes it.
func (e *env) steer(ctx context.Context, f *changeFlags, plan func(context.Context, *target) (*change, error)) error {
	if err := f.validate(); err != nil {
		return err
	}
	t, err := e.find(ctx)
	if err != nil {
		return err
	}
	c, err := plan(ctx, t)
	if err != nil {
		return err
	}
	return e.make(ctx, t, c, f)
}

func drainOf(pool *v1alpha1.InferencePool, backend string, f *drainFlags) (*change, error) {
	if names := backendsOf(pool); !slices.Contains(names, backend) && !someUnlisted(pool) {
		return nil, fmt.Errorf("pool %s has no backend %s; it has: %s", pool.Name, backend, oneOf(names))
	}
	drain := map[string]any{"backend": backend, "sessions": f.sessions}
	if f.deadline > 0 {
		drain["deadlineSeconds"] = int64(f.deadline / time.Second)
	}
	if f.abort {
		drain["onDeadline"] = string(v1alpha1.DeadlineAbort)
	}
	return &change{
		entry: entry{manager: managerOf("drain", backend), spec: map[string]any{"drain": []any{drain}}},
		did:   fmt.Sprintf("backend %s is being drained", backend),
		next: []string{
			fmt.Sprintf("To wait until nothing runs there:  kubectl berth drain %s --wait%s", backend, again(pool, f)),
			fmt.Sprintf("To take it back:                   kubectl berth undrain %s%s", backend, ofPool(pool)),
		},
		judge: func(p *v1alpha1.InferencePool) progress { return drainedYet(p, backend) },
		stuck: fmt.Sprintf("see what still runs there:  kubectl berth sessions --backend %s%s\n"+
			"to end it by force:         kubectl berth drain %s --deadline 1s --abort-at-deadline%s", backend, ofPool(pool), backend, ofPool(pool)),
	}, nil
}

// again repeats the flags of a drain, for a command that changes nothing about it.
func again(pool *v1alpha1.InferencePool, f *drainFlags) string {
	out := ""
	if f.sessions != string(v1alpha1.DrainMove) {
		out += " --sessions " + f.sessions
	}
	if f.deadline > 0 {
		out += " --deadline " + f.deadline.String()
	}
	if f.abort {
		out += " --abort-at-deadline"
	}
	return out + ofPool(pool)
}

// ofPool are the flags that name the pool in a command that the user is told.
func ofPool(pool *v1alpha1.InferencePool) string { return " -n " + pool.Namespace + " -p " + pool.Name }

// drainedYet looks at every life of the backend that the status tells of.
func drainedYet(pool *v1alpha1.InferencePool, backend string) progress {
	p := progress{done: true, line: backend + " is drained: nothing runs there"}
	known := false
	for i := range pool.Status.Backends {
		b := &pool.Status.Backends[i]
		if b.Name != backend {
			continue
		}
		known = true
		if b.Reason == v1alpha1.ReasonBackendNotFound {
			return progress{never: fmt.Errorf("pool %s has no backend %s any more; end its drain with kubectl berth undrain %s%s", pool.Name, backend, backend, ofPool(pool))}
		}
		if b.State != v1alpha1.BackendDrained {
			p = progress{line: stateLine(b)}
		}
	}
	if !known {
		return progress{line: "the status does not list " + backend + " yet"}
	}
	return p
}

// stateLine is a backend's state as one line.
func stateLine(b *v1alpha1.BackendStatus) string {
	line := b.Name + " is " + string(b.State)
	if b.Reason != "" {
		line += " (" + string(b.Reason) + ")"
	}
	if b.Message != "" {
		line += ": " + b.Message
	}
	return line
}

// backendsOf are the backends by name that the status lists.
func backendsOf(pool *v1alpha1.InferencePool) []string {
	var names []string
	for i := range pool.Status.Backends {
		names = append(names, pool.Status.Backends[i].Name)
	}
	for _, endpoint := range pool.Spec.Backends.Endpoints {
		names = append(names, endpoint.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// someUnlisted: the pool may have backends that its status has no room for.
func someUnlisted(pool *v1alpha1.InferencePool) bool {
	const listed = 256
	return len(pool.Status.Backends) >= listed
}
