package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Replica is one manager of several.
type Replica struct {
	// Process is the manager's.
	*Process
	// Leases is the host:port of its lease API.
	Leases string
	// Metrics is the host:port of its metrics.
	Metrics string
	// Link is its way to the API server.
	Link  *Link
	ready string // URL
	// frozen: it answers no readiness probe, so that a Service passes nothing on to it.
	frozen atomic.Bool
}

// Quit asks the process to end, and waits until it has.
func (r *Replica) Quit(ctx context.Context) { stop(ctx, time.Minute, r.Process) }

// StartReplica starts a manager that takes part in the election, besides those that run. It does not
// wait until that one is ready.
func (s *System) StartReplica(ctx context.Context, flags ...string) (*Replica, error) {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	r := &Replica{Leases: loopback(ports[0]), Metrics: loopback(ports[1]), ready: scheme(flags) + loopback(ports[2]) + "/readyz"}
	name := "manager-" + strconv.Itoa(s.front.number())
	kubeconfig, err := s.linked(r, name)
	if err != nil {
		return nil, err
	}
	r.Process, err = s.processes.Start(Command{
		Name: name, Path: filepath.Join(s.config.Bin, "manager"),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig, "--lease-bind-address=" + r.Leases,
			"--metrics-bind-address=" + r.Metrics, "--health-probe-bind-address=" + loopback(ports[2]),
			"--leader-elect", "--token-key-secret=" + tokenKeySecret,
			"--engine-special-addresses=Allow", "--engine-networks=127.0.0.0/8",
		}, flags...),
	})
	if err != nil {
		r.Link.close()
		return nil, err
	}
	s.front.add(r)
	go func() {
		<-r.Done()
		r.Link.close()
	}()
	return r, nil
}

// scheme is how ports are served under these flags.
func scheme(flags []string) string {
	if slices.Contains(flags, "--tls=Everywhere") {
		return "https://"
	}
	return "http://"
}

// linked makes a replica's link, and a kubeconfig that leads over it.
func (s *System) linked(r *Replica, name string) (string, error) {
	server, err := url.Parse(s.front.account.Host)
	if err != nil {
		return "", fmt.Errorf("address of the API server: %w", err)
	}
	if r.Link, err = newLink(server.Host); err != nil {
		return "", err
	}
	account := rest.CopyConfig(s.front.account)
	account.Host = "https://" + r.Link.Address()
	path := filepath.Join(s.state(), name+".kubeconfig")
	return path, writeKubeconfig(path, account)
}

// UntilReady waits until a replica is ready.
func (s *System) UntilReady(ctx context.Context, r *Replica) error {
	return until(ctx, managerPatience, r.Name()+" to be ready", func(ctx context.Context) error { return probe(ctx, r.ready) })
}

// startReplicas starts as many managers as were asked for, all at once, behind one address.
func (s *System) startReplicas(ctx context.Context) error {
	account, err := s.managerConfig(ctx)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cmp.Or(s.config.LeaseAddress, "127.0.0.1:0"))
	if err != nil {
		return fmt.Errorf("address of the replicas: %w", err)
	}
	s.front = &front{listener: listener, account: account}
	s.leases = "http://" + listener.Addr().String()
	go s.front.serve()
	var replicas []*Replica
	for range s.config.Replicas {
		r, err := s.StartReplica(ctx, s.config.ReplicaFlags...)
		if err != nil {
			return err
		}
		replicas = append(replicas, r)
	}
	for _, r := range replicas {
		if err := s.UntilReady(ctx, r); err != nil {
			return err
		}
	}
	s.config.Say(fmt.Sprintf("%d managers serve leases behind %s", len(replicas), s.leases))
	return nil
}

// Replicas lists the managers that have not ended.
func (s *System) Replicas() []*Replica { return s.front.alive() }

// front is what a Service does: it passes each connection on to one of the replicas that run, in
// turn.
type front struct {
	listener net.Listener
	// account is how the managers' account reaches the API server.
	account *rest.Config

	mu       sync.Mutex
	replicas []*Replica // guarded by mu
	started  int        // guarded by mu
	turn     int        // guarded by mu
}

// number counts the replicas that were ever started.
func (f *front) number() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started++
	return f.started - 1
}

func (f *front) add(r *Replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = append(f.replicas, r)
}

func (f *front) alive() []*Replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*Replica
	for _, r := range f.replicas {
		select {
		case <-r.Done():
		default:
			list = append(list, r)
		}
	}
	return list
}

func (f *front) serve() {
	for {
		in, err := f.listener.Accept()
		if err != nil {
			return // it was closed
		}
		go f.pass(in)
	}
}

// pass carries the bytes of one connection both ways until either side ends.
func (f *front) pass(in net.Conn) {
	defer in.Close()
	out, err := f.dial()
	if err != nil {
		return // the client sees its connection closed, as it would behind a Service
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	copyTo := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // how a connection ends is for its two ends to judge
		_ = to.Close()
		done <- struct{}{}
	}
	go copyTo(out, in)
	go copyTo(in, out)
	<-done
}

var errNobody = errors.New("no replica takes connections")

func (f *front) dial() (net.Conn, error) {
	list := f.alive()
	f.mu.Lock()
	f.turn++
	first := f.turn
	f.mu.Unlock()
	for i := range list {
		if list[(first+i)%len(list)].frozen.Load() {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second}
		if out, err := dialer.DialContext(context.Background(), "tcp", list[(first+i)%len(list)].Leases); err == nil {
			return out, nil
		}
	}
	return nil, errNobody
}

// close stops every replica, and takes no more connections.
func (f *front) close(ctx context.Context) {
	_ = f.listener.Close()
	var list []*Process
	for _, r := range f.alive() {
		_ = r.Thaw()
		r.Link.Heal()
		list = append(list, r.Process)
	}
	stop(ctx, 15*time.Second, list...)
}
