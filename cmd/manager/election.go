package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/controller"
	"github.com/berthmaster/berthmaster/internal/election"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/tokenkey"
)

const (
	// leaseName is the Lease that the replicas hold in turn.
	leaseName = "berthmaster-manager"
	// keyPeriod is how often the Secret of lease tokens is looked at.
	keyPeriod = time.Minute
)

// electionOptions are the flags about other replicas.
type electionOptions struct {
	elect     bool
	namespace string
	advertise string
	lease     time.Duration
	renew     time.Duration
	retry     time.Duration
}

func (o *electionOptions) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.elect, "leader-elect", false,
		"take part in an election, for more than one replica; without it this is the only one, and leases go on while the API server is away")
	flags.StringVar(&o.namespace, "manager-namespace", "berthmaster-system",
		"the namespace of the manager, with its Lease and the Secret of lease tokens")
	flags.Func("lease-advertise-address",
		"host:port at which other replicas reach this one's lease API; empty: --lease-bind-address. An IPv6 address needs no brackets",
		func(text string) error { o.advertise = bracketed(text); return nil })
	flags.DurationVar(&o.lease, "leader-lease-duration", 10*time.Second,
		"how long other replicas wait before they take over; with the retry period it bounds the gap without grants after a crash")
	flags.DurationVar(&o.renew, "leader-renew-deadline", 7*time.Second,
		"how long after sending its last successful renewal the leader still grants; below the lease duration")
	flags.DurationVar(&o.retry, "leader-retry-period", time.Second, "the pause between two renewals, or looks at the Lease")
}

// bracketed puts the brackets around an IPv6 address before a port: a manifest that says $(POD_IP):8085
// has none.
func bracketed(address string) string {
	end := strings.LastIndexByte(address, ':')
	if end < 0 {
		return address
	}
	if ip, err := netip.ParseAddr(address[:end]); err != nil || !ip.Is6() {
		return address
	}
	return net.JoinHostPort(address[:end], address[end+1:])
}

// validate refuses an address that other replicas cannot call: with a wildcard each would find itself.
func (o *electionOptions) validate(bound string) error {
	if !o.elect {
		return nil
	}
	address := cmp.Or(o.advertise, bound)
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("--leader-elect needs --lease-advertise-address, the host:port at which other replicas reach this one: %q is none", address)
	}
	return nil
}

// leadership adapts the election to the lease API.
type leadership struct {
	candidate *election.Candidate
	self      string
}

// Standing is how things stand now.
func (l leadership) Standing() server.Standing {
	s := l.candidate.Standing()
	switch s.Role {
	case election.RoleLeads, election.RoleLapsed:
		return server.Standing{Role: server.RoleAnswers, Self: l.self, Reign: s.Reign}
	case election.RoleFollows:
		return server.Standing{Role: server.RoleForwards, Self: l.self, Leader: s.Leader.Address, LeaderID: s.Leader.String(), Reign: s.Reign}
	case election.RoleNone:
	}
	return server.Standing{Self: l.self}
}

// self is this replica, for people and for the others.
func (o *options) self() (v1alpha1.RouterStatus, error) {
	name, err := os.Hostname()
	if err != nil {
		return v1alpha1.RouterStatus{}, fmt.Errorf("the name of this replica: %w", err)
	}
	return v1alpha1.RouterStatus{Name: name, Address: cmp.Or(o.election.advertise, o.leaseAddress)}, nil
}

// newCandidate makes this replica's candidate.
func newCandidate(clients kubernetes.Interface, o *options, authority election.Authority) (*election.Candidate, error) {
	self, err := o.self()
	if err != nil {
		return nil, err
	}
	identity := election.Identity{Name: self.Name, Address: self.Address, Life: rand.Text()[:8]}
	return election.New(election.Config{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: leaseName, Namespace: o.election.namespace},
			Client:    clients.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity.String()},
		},
		LeaseDuration: o.election.lease, RenewDeadline: o.election.renew, RetryPeriod: o.election.retry,
		Authority: authority, Clock: time.Now, Log: slog.New(logr.ToSlogHandler(ctrl.Log.WithName("election"))),
	})
}

// electionClients calls the API server with a bound on each call, so that one that hangs does not
// use up the renew deadline.
func electionClients(cluster *rest.Config, o *options) (kubernetes.Interface, error) {
	bounded := rest.CopyConfig(cluster)
	bounded.Timeout = o.election.renew / 2
	clients, err := kubernetes.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("client for the election: %w", err)
	}
	return clients, nil
}

// electionOf says whether the controller has to wait for an election.
func (o *electionOptions) electionOf() controller.Election {
	if o.elect {
		return controller.ElectionAwaited
	}
	return controller.ElectionNone
}

// keys are those of lease tokens; follow keeps them up to date until its context ends.
func (o *options) keys(ctx context.Context, clients kubernetes.Interface) (server.Keys, func(context.Context, *server.Server), error) {
	if o.tokenKeySecret == "" {
		keys, err := o.tokenKeys()
		return keys, func(context.Context, *server.Server) {}, err
	}
	store := tokenkey.Store{Secrets: clients.CoreV1().Secrets(o.election.namespace), Name: o.tokenKeySecret}
	pair, err := store.Open(ctx)
	if err != nil {
		return server.Keys{}, nil, err
	}
	follow := func(ctx context.Context, api *server.Server) {
		log := ctrl.Log.WithName("token keys")
		store.Follow(ctx, keyPeriod, pair, func(p tokenkey.Pair) error { return api.Rotate(server.Keys(p)) },
			func(err error) { log.Error(err, "the keys in use stay in use") })
	}
	return server.Keys(pair), follow, nil
}
