// Command release installs, upgrades and uninstalls the chart on a cluster with Helm's own library, as
// "helm upgrade --install" and "helm uninstall" do. The stories of test/e2e/cluster run it, on a cluster
// that no image or program can be fetched into.
//
//	release -namespace NAME install [KEY=VALUE ...]
//	release -namespace NAME uninstall
package main
