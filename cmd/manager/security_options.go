package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/berthmaster/berthmaster/internal/certs"
)

// The values of --authentication.
const (
	// authenticationNone: nobody is asked who they are; for loopback.
	authenticationNone = "None"
	// authenticationTokenReview: callers show a token of Kubernetes.
	authenticationTokenReview = "TokenReview"
)

// The values of --tls.
const (
	// tlsBeyondLoopback: ports on loopback are served without.
	tlsBeyondLoopback = "BeyondLoopback"
	// tlsEverywhere: no port is.
	tlsEverywhere = "Everywhere"
)

// securityOptions are the flags about who may call, and how ports are served.
type securityOptions struct {
	authentication string
	audiences      string
	tls            string
	certificate    certs.Files
	names          string
}

func (o *securityOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.authentication, "authentication", authenticationNone,
		"TokenReview: callers of every port but that of the probes show a Kubernetes token, and need rights on inferencepools/leases; None: nobody is asked, and no port may leave loopback")
	flags.StringVar(&o.audiences, "token-audiences", "",
		"audiences, one of which callers' tokens must be meant for, separated by commas; empty: the API server's own")
	flags.StringVar(&o.tls, "tls", tlsBeyondLoopback,
		"which ports are served by TLS: BeyondLoopback or Everywhere")
	flags.StringVar(&o.certificate.Certificate, "tls-cert-file", "",
		"PEM file of the serving certificate and its chain, read again when it changes; empty: the manager makes its own, in the Secret "+servingSecret)
	flags.StringVar(&o.certificate.Key, "tls-key-file", "", "PEM file of its key")
	flags.StringVar(&o.certificate.Authorities, "tls-ca-file", "",
		"PEM file of the authorities that clients and other replicas trust it by; empty: the system's")
	flags.StringVar(&o.names, "tls-names", "",
		"DNS names of the manager's own certificate, separated by commas; the first is the one that other replicas ask for; empty: those of the Services in config/manager")
}

// dnsNames are the names that the ports are called by.
func (o *options) dnsNames() []string {
	if o.security.names != "" {
		return strings.Split(o.security.names, ",")
	}
	var names []string
	for _, service := range []string{"berthmaster-leases", "berthmaster-metrics"} {
		short := service + "." + o.election.namespace
		names = append(names, short+".svc", short, short+".svc.cluster.local")
	}
	return append(names, "localhost")
}

func (o *securityOptions) validate() error {
	switch {
	case o.authentication != authenticationNone && o.authentication != authenticationTokenReview:
		return fmt.Errorf("--authentication=%s: must be None or TokenReview", o.authentication)
	case o.tls != tlsBeyondLoopback && o.tls != tlsEverywhere:
		return fmt.Errorf("--tls=%s: must be BeyondLoopback or Everywhere", o.tls)
	case o.audiences != "" && o.authentication == authenticationNone:
		return errors.New("--token-audiences belongs to --authentication=TokenReview")
	}
	return o.validateCertificates()
}

func (o *securityOptions) validateCertificates() error {
	switch files := o.certificate; {
	case (files.Certificate == "") != (files.Key == ""):
		return errors.New("--tls-cert-file and --tls-key-file belong together")
	case files.Certificate == "" && files.Authorities != "":
		return errors.New("--tls-ca-file belongs to --tls-cert-file")
	case o.names != "" && slices.Contains(strings.Split(o.names, ","), ""):
		return errors.New("--tls-names has an empty name")
	}
	return nil
}

// validatePorts refuses ports that strangers would reach.
func (o *options) validatePorts() error {
	for _, port := range []struct{ flag, address string }{
		{"--lease-bind-address", o.leaseAddress}, {"--metrics-bind-address", o.metricsAddress},
	} {
		if o.security.authentication == authenticationNone && !onLoopback(port.address) {
			return fmt.Errorf("%s=%s is beyond loopback, where callers must be authenticated: add --authentication=%s", port.flag, port.address, authenticationTokenReview)
		}
	}
	return nil
}

// onLoopback reports whether an address can be reached from this machine only. Names other than
// localhost are not resolved, since what they resolve to may change.
func onLoopback(address string) bool {
	if address == "0" { // the port is off
		return true
	}
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
