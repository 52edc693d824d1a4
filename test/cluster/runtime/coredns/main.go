// Command coredns is CoreDNS with the few plugins that the test cluster's zone
// needs. The stock program brings the SDKs of several clouds, which double the time to compile
// everything else.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order in which plugins see a query, not that of the Corefile: template takes what no one
	// before it has answered.
	dnsserver.Directives = []string{"errors", "health", "ready", "cache", "kubernetes", "template"}
	coremain.Run()
}
