package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

// errEnded: the manager ended by itself, for what its log says.
var errEnded = errors.New("the manager ended")

// manager is the process that is measured.
type manager struct {
	cmd    *exec.Cmd
	leases string
	// ended is closed when the process has ended.
	ended chan struct{}
}

// startManager runs the manager until the site closes. Its log goes to a file in folder.
func startManager(o *options, folder, kubeconfig string, ports [3]int) (*manager, error) {
	log, err := os.Create(filepath.Join(folder, "manager.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	local := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	m := &manager{leases: "http://" + local(ports[0]), ended: make(chan struct{})}
	m.cmd = exec.Command(o.manager, //nolint:noctx // close ends it, gently
		"--kubeconfig="+kubeconfig, "--lease-bind-address="+local(ports[0]),
		"--metrics-bind-address="+local(ports[1]), "--health-probe-bind-address="+local(ports[2]),
		"--engine-special-addresses=Allow", "--engine-networks=127.0.0.0/8")
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	go func() {
		defer close(m.ended)
		_ = m.cmd.Wait() // whoever waits for the end asks the log why
	}()
	return m, nil
}

// stop ends the process, gently if it can be.
func (m *manager) stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
	case <-time.After(15 * time.Second):
		_ = m.cmd.Process.Kill()
		<-m.ended
	}
}

// idle is how much of a processor the manager uses, in thousandths, over some time.
func (m *manager) idle(ctx context.Context, length time.Duration) (float64, error) {
	began := time.Now()
	first, err := m.usage().CPU()
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-m.ended:
		return 0, errEnded
	case <-time.After(length):
	}
	last, err := m.usage().CPU()
	return float64(last-first) / float64(time.Since(began)) * 1000, err
}

// usage is what the kernel accounts to the process.
func (m *manager) usage() child.Usage { return child.Usage{PID: m.cmd.Process.Pid} }
