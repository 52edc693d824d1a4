// Package samples tests what config/samples has beside manifests: the hook that waits for an engine to be idle.
// What the manifests ask for is tried where they are used, in test/e2e/cluster.
package samples
