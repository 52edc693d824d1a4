package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/connect"
	"github.com/berthmaster/berthmaster/internal/cli/doctor"
	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// errFound ends doctor, for scripts, when something does not work.
var errFound = errors.New("something does not work: see above")

func newDoctor(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with a pool, and say what to do",
		Long: `Look at the pool, its pods, the manager, the router, the engines and your own credentials, and say what
is wrong and what to do about it. It changes nothing. It ends with 1 if something does not work.`,
		Example: `  kubectl berth doctor
  kubectl berth doctor -o json | jq -r '.[].fault'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validObject(output); err != nil {
				return err
			}
			return e.doctor(cmd.Context(), output)
		},
	}
	e.bindPool(cmd)
	e.bindRouter(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; empty: words")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (e *env) doctor(ctx context.Context, output string) error {
	config, err := e.restConfig()
	if err != nil {
		return err
	}
	you, clockErr := doctor.Identify(ctx, config, e.clock.Now)
	t, err := e.find(ctx)
	if apierrors.IsUnauthorized(err) {
		found := doctor.JudgeIdentity(you)
		return errors.Join(e.report(output, found), err)
	}
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	engines := newEngineWays(t)
	defer engines.close()
	way := doctor.ThroughPod
	if e.router.URL != "" {
		way = doctor.ByURL
	}
	w := doctor.Look(ctx, doctor.Sources{
		Reader: t.client, Kinds: kinds, ManagerNamespace: e.router.Namespace, Way: way, You: you,
		Router: func(ctx context.Context) (*live.Pool, error) { return e.askRouter(ctx, t) }, Engine: engines.way,
	}, t.pool)
	if clockErr != nil {
		w.Unlooked = append(w.Unlooked, doctor.Unlooked{What: "the API server's clock", Err: clockErr})
	}
	return e.report(output, doctor.Judge(w))
}

func (e *env) askRouter(ctx context.Context, t *target) (*live.Pool, error) {
	router, closing, err := e.live(ctx, t)
	if err != nil {
		return nil, err
	}
	defer closing()
	return router.Pool(ctx)
}

// report prints the findings and fails if one is an error.
func (e *env) report(output string, found []doctor.Finding) error {
	if output != "" {
		if err := printValue(e.streams.Out, output, append([]doctor.Finding{}, found...)); err != nil {
			return err
		}
	} else {
		e.tellFindings(found)
	}
	if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Severity == doctor.Error }) {
		return errFound
	}
	return nil
}

func (e *env) tellFindings(found []doctor.Finding) {
	paint := painter(screenOf(e.streams.Out).colour)
	colours := map[doctor.Severity]colour{doctor.Error: red, doctor.Warning: yellow, doctor.Notice: grey}
	for _, f := range found {
		fmt.Fprintf(e.streams.Out, "%s  %s: %s\n", paint(colours[f.Severity], fmt.Sprintf("%-7s", f.Severity)), paint(bold, f.Subject), f.What)
		fmt.Fprintf(e.streams.Out, "         %s\n", f.Do)
	}
	if len(found) == 0 {
		fmt.Fprintln(e.streams.Out, "Nothing wrong found.")
	}
}

// engineWays are the ways to the engines: directly, and, where the user's machine does not reach a
// pod's address, by a port-forward to the pod.
type engineWays struct {
	target   *target
	direct   *http.Transport
	forwards []*connect.Forward
}

func newEngineWays(t *target) *engineWays {
	return &engineWays{target: t, direct: &http.Transport{DialContext: connect.DirectDial(time.Second), MaxIdleConnsPerHost: 1}}
}

func (w *engineWays) close() {
	w.direct.CloseIdleConnections()
	for _, f := range w.forwards {
		f.Close()
	}
}

// way is how one engine is reached. It is called for one backend after another.
func (w *engineWays) way(b *v1alpha1.BackendStatus) http.RoundTripper {
	port := int(w.target.pool.Spec.Backends.Port)
	if port == 0 || strings.HasPrefix(b.Incarnation, "endpoint:") {
		return w.direct
	}
	forward := connect.NewForward(w.target.config, w.target.pool.Namespace, b.Name, port)
	w.forwards = append(w.forwards, forward)
	return connect.FirstOf{Direct: w.direct, Forward: &http.Transport{DialContext: forward.Dial, DisableKeepAlives: true}}
}
