package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/berthmaster/berthmaster/internal/apiserver"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// reachOptions are the flags about which addresses are called as engines.
type reachOptions struct {
	networks string
	special  string
}

func (o *reachOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.networks, "engine-networks", "",
		"networks in which static endpoints of pools may be, in CIDR notation, separated by commas; empty: pools may have none, only pods")
	flags.StringVar(&o.special, "engine-special-addresses", string(sglang.SpecialRefused),
		"Refuse: no engine is called at an address that is loopback, link-local, multicast, a cloud's metadata or the API server's; Allow: for a system on one machine")
}

// parse reads the flags.
func (o *reachOptions) parse() (sglang.Reach, error) {
	r := sglang.Reach{Special: sglang.Special(o.special)}
	if r.Special != sglang.SpecialRefused && r.Special != sglang.SpecialAllowed {
		return r, fmt.Errorf("--engine-special-addresses=%s: must be Refuse or Allow", o.special)
	}
	if o.networks == "" {
		return r, nil
	}
	for text := range strings.SplitSeq(o.networks, ",") {
		network, err := netip.ParsePrefix(text)
		if err != nil || network != network.Masked() {
			return r, fmt.Errorf("--engine-networks: %q is no network, such as 10.0.0.0/8", text)
		}
		r.Networks = append(r.Networks, network)
	}
	return r, nil
}

// reach is which addresses may be called, and those of the API server, which may not, to be followed from then on;
// nil: they are addresses like others.
func (o *reachOptions) reach(ctx context.Context, cluster *rest.Config, clients kubernetes.Interface) (sglang.Reach, *apiserver.Addresses, error) {
	r, err := o.parse()
	if err != nil || r.Special == sglang.SpecialAllowed {
		return r, nil, err
	}
	service := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	api := &apiserver.Addresses{Hosts: []string{cluster.Host, service}, Clients: clients}
	r.Forbidden = api.Has
	switch err := api.Read(ctx); {
	case errors.Is(err, apiserver.ErrNoRight):
		ctrl.Log.WithName("engines").Info("only the hosts of the API server are never called as engines, not what is behind its Service: keep that out of --engine-networks",
			"reason", err.Error())
	case err != nil:
		return r, nil, fmt.Errorf("what is not to be called as an engine: %w", err)
	}
	return r, api, nil
}
