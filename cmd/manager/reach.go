package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

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
		"Refuse: no engine is called at an address that is loopback, link-local, multicast or the API server's; Allow: for a system on one machine")
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

// reach is which addresses may be called, the API server's excepted.
func (o *reachOptions) reach(ctx context.Context, cluster *rest.Config) (sglang.Reach, error) {
	r, err := o.parse()
	if err != nil || r.Special == sglang.SpecialAllowed {
		return r, err
	}
	host := cluster.Host
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	for _, address := range []string{host, net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))} {
		found, err := resolve(ctx, address)
		if err != nil {
			return r, fmt.Errorf("addresses of the API server, which are not to be called as engines: %w", err)
		}
		r.Forbidden = append(r.Forbidden, found...)
	}
	return r, nil
}

// resolve lists the addresses of a host:port; an empty host has none, and a missing port is that of HTTPS.
func resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), "443"
	}
	if host == "" {
		return nil, nil
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, errors.New("the port is no number")
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var found []netip.AddrPort
	for _, addr := range list {
		found = append(found, netip.AddrPortFrom(addr.Unmap(), uint16(number)))
	}
	return found, nil
}
