package local

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// enginePatience bounds how long a simulated engine may take to answer.
const enginePatience = time.Minute

// engine is a simulated SGLang server and the pod it stands in.
type engine struct {
	name    string
	address string // loopback address, the pod's IP
	process *Process
	pod     *corev1.Pod
	lives   int // containers started in this pod
}

// engineNames returns the names of n engines, all of one length, so that none
// is the beginning of another and lists sort as people expect.
func engineNames(n int) []string {
	width := len(strconv.Itoa(n - 1))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("sglang-%0*d", width, i)
	}
	return names
}

// addresses returns n loopback addresses from first on, and refuses those at
// which somebody already listens: an engine left over from elsewhere would
// otherwise be taken for one of ours.
func addresses(ctx context.Context, first netip.Addr, n, port int) ([]string, error) {
	out := make([]string, 0, n)
	var listen net.ListenConfig
	for addr := first; len(out) < n; addr = addr.Next() {
		if !addr.IsLoopback() {
			return nil, fmt.Errorf("address %s is not on the loopback interface", addr)
		}
		l, err := listen.Listen(ctx, "tcp", netip.AddrPortFrom(addr, uint16(port)).String())
		if err != nil {
			return nil, fmt.Errorf("an engine's address is taken, perhaps by another local system: %w", err)
		}
		l.Close()
		out = append(out, addr.String())
	}
	return out, nil
}

// startEngine starts the process and waits until its API answers.
func (s *System) startEngine(ctx context.Context, e *engine) error {
	process, err := s.processes.Start(Command{
		Name: e.name,
		Path: filepath.Join(s.config.Bin, "sglang-sim"),
		Args: s.engineArgs(e),
	})
	if err != nil {
		return err
	}
	e.process = process
	e.lives++
	url := "http://" + net.JoinHostPort(e.address, strconv.Itoa(s.kubelet.port))
	return until(ctx, enginePatience, e.name+" to answer", func(ctx context.Context) error {
		select {
		case <-process.Done():
			return hopeless(fmt.Errorf("%s ended: %w; see %s", e.name, process.Err(), s.processes.LogPath(e.name)))
		default:
		}
		return probe(ctx, url+"/ping") // which needs no key
	})
}

func (s *System) engineArgs(e *engine) []string {
	return append([]string{
		"--host", e.address,
		"--port", strconv.Itoa(s.kubelet.port),
		"--name", e.name,
		"--exec-log", filepath.Join(s.ExecutionLogs(), e.name+".exec.jsonl"),
		"--speed", strconv.FormatFloat(s.config.Speed, 'g', -1, 64),
	}, s.config.EngineFlags...)
}

// startEngines starts every engine and reports its pod as running.
func (s *System) startEngines(ctx context.Context) error {
	found, err := addresses(ctx, s.config.FirstAddress, s.config.Engines, s.kubelet.port)
	if err != nil {
		return err
	}
	for i, name := range engineNames(s.config.Engines) {
		s.engines = append(s.engines, &engine{name: name, address: found[i]})
	}
	for _, e := range s.engines {
		if err := s.run(ctx, e); err != nil {
			return err
		}
	}
	s.config.Say(fmt.Sprintf("%d simulated engines run on %s to %s, port %d, %g times as fast as real ones",
		len(found), found[0], found[len(found)-1], s.kubelet.port, s.config.Speed))
	return nil
}

// run makes a pod for the engine, starts the process and reports both.
func (s *System) run(ctx context.Context, e *engine) (err error) {
	if e.pod, err = s.kubelet.bind(ctx, e.name); err != nil {
		return err
	}
	if err := s.startEngine(ctx, e); err != nil {
		return err
	}
	s.watch(e.process)
	return s.kubelet.reportRunning(ctx, e.pod, e.address, e.lives)
}
