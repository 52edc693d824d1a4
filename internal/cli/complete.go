package cli

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// Completions are a convenience: what cannot be had is left out without a word.

func (e *env) poolNames(ctx context.Context) []string {
	_, c, namespace, err := e.connect()
	if err != nil {
		return nil
	}
	var list v1alpha1.InferencePoolList
	if c.List(ctx, &list, client.InNamespace(namespace)) != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func (e *env) namespaceNames(ctx context.Context) []string {
	_, c, _, err := e.connect()
	if err != nil {
		return nil
	}
	var list corev1.NamespaceList
	if c.List(ctx, &list) != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func (e *env) backendNames(ctx context.Context) []string {
	t, err := e.find(ctx)
	if err != nil {
		return nil
	}
	return backendsOf(t.pool)
}

func (e *env) drainedNames(ctx context.Context) []string {
	t, err := e.find(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, d := range t.pool.Spec.Drain {
		names = append(names, d.Backend)
	}
	return names
}

func (e *env) senderNames(ctx context.Context) []string {
	t, err := e.find(ctx)
	if err != nil {
		return nil
	}
	return sendersOf(t.pool)
}

func (e *env) sessionNames(ctx context.Context) []string {
	t, err := e.find(ctx)
	if err != nil {
		return nil
	}
	router, closing, err := e.live(ctx, t)
	if err != nil {
		return nil
	}
	defer closing()
	page, err := router.Pool(ctx)
	if err != nil || page.Sessions > completedSessions {
		return nil // a list of thousands helps nobody
	}
	return sessionsOf(ctx, router)
}

// completedSessions is up to how many sessions are offered.
const completedSessions = 200

// firstArgument completes the first argument and no other.
func firstArgument(names func(context.Context) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(names(c.Context()), typed), cobra.ShellCompDirectiveNoFileComp
	}
}
