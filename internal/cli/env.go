package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/connect"
	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// resource is the full name of the kind: another project has one that is called the same.
const resource = "inferencepools.inference.berthmaster.io"

// env is what every command stands on: the streams, the clock, and the flags that say which cluster,
// which pool and which router.
type env struct {
	streams genericiooptions.IOStreams
	clock   clock.WithTicker
	kube    *genericclioptions.ConfigFlags
	router  connect.Router
	pool    string
}

func newEnv(streams genericiooptions.IOStreams) *env {
	return &env{streams: streams, clock: clock.RealClock{}, kube: genericclioptions.NewConfigFlags(true)}
}

// bindPool declares the flags of a command that works on a pool.
func (e *env) bindPool(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&e.pool, "pool", "p", "", "the pool; empty: the only one of the namespace")
	e.complete(cmd, "pool", e.poolNames)
}

// bindRouter declares the flags of a command that asks the router as well.
func (e *env) bindRouter(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.router.URL, "router-url", "", "base URL of the router; empty: a port-forward to a pod of the manager")
	f.StringVar(&e.router.Namespace, "router-namespace", connect.ManagerNamespace, "where the manager runs")
	f.StringVar(&e.router.Trust.CAFile, "router-ca-file", "", "certificates, as PEM, that vouch for the router; empty: those that the manager publishes, or the system's with --router-url")
	f.StringVar(&e.router.ServiceAccount, "as-service-account", "",
		"ask the router as this service account of the pool's namespace, by a token requested for it; for users of client certificates, which the router cannot check")
}

// target is one pool and the way to it.
type target struct {
	config *rest.Config
	client client.Client
	pool   *v1alpha1.InferencePool
}

func (t *target) key() client.ObjectKey { return client.ObjectKeyFromObject(t.pool) }

// name is the pool as kubectl would print it.
func (t *target) name() string { return "inferencepool.inference.berthmaster.io/" + t.pool.Name }

// find finds the pool that the flags name.
func (e *env) find(ctx context.Context) (*target, error) {
	config, c, namespace, err := e.connect()
	if err != nil {
		return nil, err
	}
	pool, err := choosePool(ctx, c, namespace, e.pool)
	if err != nil {
		return nil, err
	}
	return &target{config: config, client: c, pool: pool}, nil
}

func (e *env) connect() (*rest.Config, client.Client, string, error) {
	config, err := e.restConfig()
	if err != nil {
		return nil, nil, "", err
	}
	namespace, _, err := e.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, nil, "", err
	}
	c, err := newClient(config)
	return config, c, namespace, err
}

// nowhere is where kubectl's libraries look for an API server when nobody has named one.
const nowhere = "http://localhost:8080"

// restConfig is how to reach the API server. Without a kubeconfig that is nowhere, which would be
// reported as a refused connection.
func (e *env) restConfig() (*rest.Config, error) {
	config, err := e.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	said := e.kube.APIServer != nil && *e.kube.APIServer != ""
	if config.Host == nowhere && !said {
		return nil, errors.New("no kubeconfig was found; name one by --kubeconfig or KUBECONFIG (that of make local is .cache/demo/state/admin.kubeconfig)")
	}
	return config, nil
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	return c, nil
}

// choosePool is the pool of that name, or the only one of the namespace.
func choosePool(ctx context.Context, c client.Client, namespace, name string) (*v1alpha1.InferencePool, error) {
	if name != "" {
		pool := &v1alpha1.InferencePool{}
		return pool, explainMissing(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pool))
	}
	var list v1alpha1.InferencePoolList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, explainMissing(err)
	}
	switch len(list.Items) {
	case 0:
		return nil, fmt.Errorf("namespace %s has no %s: name another by -n, or make a pool first", namespace, resource)
	case 1:
		return &list.Items[0], nil
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return nil, fmt.Errorf("namespace %s has several pools, say which with --pool: %s", namespace, strings.Join(names, ", "))
}

// explainMissing says what to do where the resource itself is not installed.
func explainMissing(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this cluster has no %s: install it with kubectl apply --server-side -k config/default: %w", resource, err)
	}
	return err
}

// live reaches the pool's router. The caller calls closing.
func (e *env) live(ctx context.Context, t *target) (c *live.Client, closing func(), err error) {
	router := e.router
	router.Config = t.config
	return router.Open(ctx, t.pool.Namespace, t.pool.Name)
}

// explainRefusal says what to do about a router's refusal of the caller.
func (e *env) explainRefusal(t *target, err error) error {
	switch {
	case err == nil:
		return nil
	case live.Refused(err, "Unauthenticated") && e.router.ServiceAccount == "" && !connect.HasToken(t.config):
		return fmt.Errorf("%w\nyour kubeconfig identifies you by a client certificate, which the router cannot check: "+
			"name a service account of namespace %s with --as-service-account", err, t.pool.Namespace)
	case live.Refused(err, "Unauthenticated"):
		return fmt.Errorf("%w\nyour token was not accepted, or has expired: see kubectl auth whoami", err)
	case live.Refused(err, "Forbidden"):
		return fmt.Errorf("%w\nask for the right to get %s/leases in namespace %s, or use --as-service-account", err, resource, t.pool.Namespace)
	}
	return err
}

// note tells the user something that is no result.
func (e *env) notef(format string, args ...any) {
	fmt.Fprintf(e.streams.ErrOut, format+"\n", args...)
}

// complete registers what a flag may be completed by.
func (e *env) complete(cmd *cobra.Command, flag string, names func(context.Context) []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return beginning(names(c.Context()), typed), cobra.ShellCompDirectiveNoFileComp
	}) // it fails for a flag that does not exist or has one already, and neither can be
}

func beginning(names []string, typed string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, typed) {
			out = append(out, n)
		}
	}
	return out
}
