package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/storage/driver"
	"helm.sh/helm/v3/pkg/strvals"
)

const (
	releaseName = "berthmaster"
	// patience bounds the wait for what was installed to be ready.
	patience = 5 * time.Minute
)

func main() {
	chart := flag.String("chart", "charts/berthmaster", "folder of the chart")
	namespace := flag.String("namespace", "", "namespace of the release (required)")
	flag.Parse()
	if err := run(context.Background(), *chart, *namespace, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release -namespace NAME install [KEY=VALUE ...] | uninstall")

// run does what is asked to the release of a namespace, on the cluster of KUBECONFIG.
func run(ctx context.Context, chart, namespace string, arguments []string) error {
	if namespace == "" || len(arguments) == 0 {
		return errUsage
	}
	settings := cli.New()
	settings.SetNamespace(namespace)
	var helm action.Configuration
	if err := helm.Init(settings.RESTClientGetter(), namespace, "secret", log.Printf); err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	switch arguments[0] {
	case "install":
		return install(ctx, &helm, chart, namespace, arguments[1:])
	case "uninstall":
		return uninstall(&helm)
	}
	return errUsage
}

// install installs the release, or upgrades the one that is there, and waits until it is ready.
func install(ctx context.Context, helm *action.Configuration, folder, namespace string, settings []string) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return fmt.Errorf("the chart: %w", err)
	}
	values := map[string]any{}
	for _, setting := range settings {
		if err := strvals.ParseInto(setting, values); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	_, err = action.NewHistory(helm).Run(releaseName)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		first := action.NewInstall(helm)
		first.ReleaseName, first.Namespace, first.CreateNamespace = releaseName, namespace, true
		first.Wait, first.Timeout = true, patience
		_, err = first.RunWithContext(ctx, chart, values)
		return err
	}
	if err != nil {
		return fmt.Errorf("earlier releases: %w", err)
	}
	next := action.NewUpgrade(helm)
	next.Namespace, next.Wait, next.Timeout = namespace, true, patience
	_, err = next.RunWithContext(ctx, releaseName, chart, values)
	return err
}

func uninstall(helm *action.Configuration) error {
	last := action.NewUninstall(helm)
	last.Wait, last.Timeout = true, patience
	_, err := last.Run(releaseName)
	return err
}
