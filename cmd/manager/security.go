package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/apiserver"
	"github.com/berthmaster/berthmaster/internal/certs"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

const (
	// servingSecret and authorityConfigMap are named in config/rbac.
	servingSecret      = "berthmaster-serving-cert"
	authorityConfigMap = "berthmaster-ca"
	// fieldManager owns what the manager writes.
	fieldManager = "berthmaster"
	// filePeriod and secretPeriod are how often certificates are looked at; publishPeriod is how soon a
	// namespace with its first pool has the bundle.
	filePeriod, secretPeriod, publishPeriod = 10 * time.Second, time.Minute, 5 * time.Second
	// reviewTime bounds one question to the API server.
	reviewTime = 10 * time.Second
	// apiServerPeriod is how often it is looked where the API server is.
	apiServerPeriod = time.Minute
)

// security is what guards the ports.
type security struct {
	clients kubernetes.Interface
	// gate is nil if nobody is asked who they are.
	gate *access.Gate
	// holder has the certificates, if any port needs them, and follow keeps them up to date.
	holder *certs.Holder
	follow func(context.Context)
	// ports says which are served by TLS, and name is what other replicas ask a leader for.
	ports string
	name  string
	// hosts are what the ports may be called by, if nobody is asked who they are.
	hosts []string
	// doors bound the connections of each port.
	doors doors
	// reach is which addresses are called as engines, and api those that are not since the API server is there; nil: it
	// is as good as others.
	reach sglang.Reach
	api   *apiserver.Addresses
}

func newSecurity(ctx context.Context, cluster *rest.Config, pools *router.Pools, o *options) (*security, error) {
	bounded := rest.CopyConfig(cluster)
	bounded.Timeout = reviewTime
	clients, err := kubernetes.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("client for reviews: %w", err)
	}
	s := &security{clients: clients, holder: &certs.Holder{}, ports: o.security.tls, name: o.dnsNames()[0], hosts: o.hosts()}
	if s.doors, err = newDoors(&o.ports); err != nil {
		return nil, err
	}
	if s.reach, s.api, err = o.engines.reach(ctx, cluster, clients); err != nil {
		return nil, err
	}
	if o.security.authentication == authenticationTokenReview {
		log := ctrl.Log.WithName("access")
		s.gate = access.New(access.Config{
			Reviewer: access.Kubernetes{Clients: clients, Audiences: audiencesOf(o.security.audiences)}, Pools: pools,
			Failed: func(err error, untold int) { log.Error(err, "callers cannot be judged", "untold", untold) },
		})
	}
	if s.tls(o.leaseAddress) == nil && s.tls(o.metricsAddress) == nil && s.tls(o.probeAddress) == nil {
		return s, nil
	}
	return s, s.openCertificates(ctx, o)
}

func audiencesOf(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// openCertificates has the certificates in use, and followed from then on.
func (s *security) openCertificates(ctx context.Context, o *options) error {
	log := ctrl.Log.WithName("certificates")
	complain := func(err error) { log.Error(err, "those in use stay in use") }
	if files := o.security.certificate; files.Certificate != "" {
		s.follow = func(ctx context.Context) { files.Follow(ctx, s.holder, filePeriod, complain) }
		return files.Load(s.holder)
	}
	own := certs.SelfMade{
		Secrets: s.clients.CoreV1().Secrets(o.election.namespace), Name: servingSecret, Names: o.dnsNames(), Clock: time.Now,
	}
	s.follow = func(ctx context.Context) { own.Follow(ctx, s.holder, secretPeriod, complain) }
	return own.Load(ctx, s.holder)
}

// tls is how a port is served; nil: without TLS.
func (s *security) tls(address string) *tls.Config {
	if address == "0" || s.ports == tlsBeyondLoopback && onLoopback(address) {
		return nil
	}
	return s.holder.Server()
}

// scrapes bounds how many scrapes are answered at the same time: each reads every pool.
const scrapes = 4

// metrics tells the metrics to those who may get their path.
func (s *security) metrics() http.Handler {
	const path = "/metrics"
	all := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: scrapes})
	if s.gate != nil {
		return s.gate.Guard(path, welcomed(all))
	}
	mux := http.NewServeMux()
	mux.Handle(path, toHosts(s.hosts, all))
	return mux
}

// addTo has the manager tell metrics and answer probes, and keep and publish certificates if it has any.
func (s *security) addTo(m ctrl.Manager, o *options, ready healthz.Checker) error {
	for _, p := range []smallPort{
		{name: "metrics", address: o.metricsAddress, tls: s.tls(o.metricsAddress), door: s.doors.metrics, gate: s.gate, handler: s.metrics()},
		{name: "probes", address: o.probeAddress, tls: s.tls(o.probeAddress), door: s.doors.probes, handler: probes(ready)},
	} {
		if p.address == "0" {
			continue
		}
		if err := m.Add(p); err != nil {
			return fmt.Errorf("set up the %s: %w", p.name, err)
		}
	}
	for _, run := range s.followers(m, o) {
		if err := m.Add(run); err != nil {
			return fmt.Errorf("set up what guards the ports: %w", err)
		}
	}
	return nil
}

// followers keep up to date what the ports and calls are guarded by.
func (s *security) followers(m ctrl.Manager, o *options) []manager.Runnable {
	var list []manager.Runnable
	if s.api != nil {
		list = append(list, manager.RunnableFunc(func(ctx context.Context) error {
			s.api.Follow(ctx, apiServerPeriod, func(err error) { ctrl.Log.WithName("engines").Error(err, "what is known stays known") })
			return nil
		}))
	}
	if s.follow != nil {
		list = append(list, manager.RunnableFunc(func(ctx context.Context) error { s.follow(ctx); return nil }),
			newAuthorities(m, s.clients, s.holder, o.election.namespace))
	}
	return list
}
