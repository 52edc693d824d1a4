package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// Sample is the manifest of the pool, below the project's folder. Its namespace,
// labels and port decide what the engines' pods look like.
const Sample = "config/samples/inferencepool.yaml"

// Config says where a local system finds and leaves things, and how large it is.
type Config struct {
	// Root is the folder of the project: config/ is read from it.
	Root string
	// Bin is the folder with manager and sglang-sim.
	Bin string
	// Assets is the folder with etcd, kube-apiserver and kubectl.
	Assets string
	// Work is the folder for logs and state. What an earlier run left there is
	// removed.
	Work string
	// Engines is how many simulated engines to start, at least 1.
	Engines int
	// FirstAddress is the loopback address of the first engine; the others
	// follow it.
	FirstAddress netip.Addr
	// LeaseAddress is the loopback host:port for the lease protocol. Empty: a
	// free port.
	LeaseAddress string
	// Speed is how much faster than real time the engines run, above 0.
	Speed float64
	// EngineFlags are further flags of each of them.
	EngineFlags []string
	// Replicas is how many managers share the work behind one address; 0: one, without an election.
	Replicas int
	// ReplicaFlags are further flags of each of them.
	ReplicaFlags []string
	// ManagerFlags are further flags of the one manager that there is without replicas.
	ManagerFlags []string
	// Say is told what happens, one line at a time.
	Say func(line string)
}

// Validate names the first field that cannot be used.
func (c Config) Validate() error {
	switch {
	case c.Root == "", c.Bin == "", c.Assets == "", c.Work == "":
		return errors.New("Root, Bin, Assets and Work must be set")
	case c.Engines < 1 || c.Engines > 64:
		return fmt.Errorf("Engines is %d, not between 1 and 64", c.Engines)
	case !c.FirstAddress.IsLoopback():
		return fmt.Errorf("FirstAddress %s is not on the loopback interface", c.FirstAddress)
	case c.Speed <= 0:
		return fmt.Errorf("Speed is %g, not above 0", c.Speed)
	case c.Say == nil:
		return errors.New("Say must be set")
	}
	return nil
}

// System is a running local system. Whoever starts it closes it.
type System struct {
	config    Config
	sample    *v1alpha1.InferencePool
	processes *Processes
	control   *ControlPlane
	clients   kubernetes.Interface
	pools     poolClient
	kubelet   *kubelet
	manager   *Process
	front     *front // nil without replicas
	leases    string // base URL of the lease protocol
	metrics   string // URL of the one manager's metrics
	engines   []*engine

	// broken carries the first process that ended without being asked to.
	broken chan error
}

// Start brings everything up except the pool: the control plane, the resource
// definition and the manager's rights, the manager, and the engines with their
// pods. On failure nothing is left running.
func Start(ctx context.Context, c Config) (_ *System, err error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("local system: %w", err)
	}
	s := &System{config: c, broken: make(chan error, 1)}
	if s.sample, err = readSample(filepath.Join(c.Root, Sample)); err != nil {
		return nil, err
	}
	if err := s.makeFolders(); err != nil {
		return nil, err
	}
	if s.processes, err = NewProcesses(s.Logs()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	for _, step := range []func(context.Context) error{
		s.startControlPlane, s.install, s.startManager, s.startEngines,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *System) makeFolders() error {
	if err := os.RemoveAll(s.config.Work); err != nil {
		return fmt.Errorf("what an earlier run left: %w", err)
	}
	for _, dir := range []string{s.state(), s.Logs(), s.ExecutionLogs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("folders of the local system: %w", err)
		}
	}
	return nil
}

func (s *System) startControlPlane(ctx context.Context) (err error) {
	begun := time.Now()
	s.control, err = startControlPlane(ctx, s.processes, controlPlaneConfig{
		assets: s.config.Assets, state: s.state(), now: begun,
	})
	if err != nil {
		return fmt.Errorf("%w; see %s", err, s.Logs())
	}
	s.watch(s.control.etcd)
	s.watch(s.control.apiserver)
	if s.clients, err = kubernetes.NewForConfig(s.control.Admin); err != nil {
		return fmt.Errorf("client for the API server: %w", err)
	}
	if s.pools, err = newPoolClient(s.control.Admin); err != nil {
		return err
	}
	s.kubelet = &kubelet{
		clients:   s.clients,
		namespace: s.sample.Namespace,
		labels:    s.sample.Spec.Backends.Selector.LabelSelector().MatchLabels,
		port:      int(s.sample.Spec.Backends.Port),
		clock:     clock.RealClock{},
	}
	s.config.Say(fmt.Sprintf("kube-apiserver and etcd are up on 127.0.0.1 (%.1f s)", time.Since(begun).Seconds()))
	return nil
}

// Logs is the folder with the output of every process.
func (s *System) Logs() string { return filepath.Join(s.config.Work, "logs") }

// ExecutionLogs is the folder in which each engine keeps its own record of what
// it executed.
func (s *System) ExecutionLogs() string { return filepath.Join(s.config.Work, "executions") }

func (s *System) state() string { return filepath.Join(s.config.Work, "state") }

// Kubectl returns the control plane's kubectl with every right.
func (s *System) Kubectl() Kubectl {
	return Kubectl{path: filepath.Join(s.config.Assets, "kubectl"), kubeconfig: s.control.AdminKubeconfig}
}

// LeaseURL is where the manager serves the lease protocol.
func (s *System) LeaseURL() string { return s.leases }

// MetricsURL is where the manager tells its metrics; empty with replicas.
func (s *System) MetricsURL() string { return s.metrics }

// Broken delivers the first process that ended without being asked to.
func (s *System) Broken() <-chan error { return s.broken }

// watch reports a process that ends by itself.
func (s *System) watch(p *Process) {
	go func() {
		<-p.Done()
		if p.expected.Load() {
			return
		}
		select {
		case s.broken <- fmt.Errorf("%s ended by itself: %w; see %s", p.Name(), p.Err(), s.processes.LogPath(p.Name())):
		default: // only the first is of interest
		}
	}()
}

// Running names the processes that have not ended.
func (s *System) Running() []string { return s.processes.Running() }

// Close stops everything, the manager first, so that it can say good-bye to the
// API server; engines next; the store last. It returns when no process is left
// and the state is removed; logs stay.
func (s *System) Close() {
	ctx := context.Background() // the caller's may be over, and stopping is bounded anyway
	if s.front != nil {
		s.front.close(ctx)
	}
	if s.manager != nil {
		stop(ctx, 15*time.Second, s.manager)
	}
	running := make([]*Process, 0, len(s.engines))
	for _, e := range s.engines {
		if e.process != nil {
			running = append(running, e.process)
		}
	}
	stop(ctx, 3*time.Second, running...)
	if s.control != nil {
		s.control.stop(ctx)
	}
	s.processes.Close()
	if err := os.RemoveAll(s.state()); err != nil {
		s.config.Say("state of the control plane stays behind: " + err.Error())
	}
}
