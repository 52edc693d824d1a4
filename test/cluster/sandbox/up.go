package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// readyPatience bounds each step of coming up.
const readyPatience = 6 * time.Minute

// dnsManifest is cluster DNS.
//
//go:embed dns.yaml
var dnsManifest string

// up makes the sandbox, waits for its end, and removes what the kernel leaves.
func up(l layout, inner []string) (int, error) {
	if err := freshState(l); err != nil {
		return 0, err
	}
	first, err := enter(sandboxNamespaces, []*os.File{os.Stdin, os.Stdout, os.Stderr},
		self("first", append([]string{"/proc/self/exe", "inside", l.bin, l.state}, inner...)...))
	if err != nil {
		return 0, err
	}
	if err := recordSandbox(l, first.Pid); err != nil {
		return 0, errors.Join(err, first.Kill())
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			// The command inside may want to tidy up; a second signal does not wait for it.
			_ = first.Signal(s)
			<-signals
			_ = first.Kill()
		}
	}()
	state, err := first.Wait()
	if err != nil {
		return 0, err
	}
	code := state.ExitCode()
	if code < 0 {
		code = 1 // killed
	}
	return code, errors.Join(os.Remove(l.record("sandbox")), removeGroups(l))
}

// freshState begins with an empty folder: an old store would make dead nodes look alive.
func freshState(l layout) error {
	if pid, err := sandboxPID(l); err == nil {
		return fmt.Errorf("a cluster runs there already, as process %d", pid)
	}
	if err := removeGroups(l); err != nil {
		return err
	}
	if err := os.RemoveAll(l.state); err != nil {
		return fmt.Errorf("what an earlier run left: %w", err)
	}
	for _, folder := range []string{"pki", "log", "run", "etcd"} {
		if err := os.MkdirAll(filepath.Join(l.state, folder), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// inside brings the cluster up in the sandbox and runs a command there; without one it waits to be
// ended.
func inside(l layout, inner []string) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := bringUp(l, time.Now()); err != nil {
		return 0, err
	}
	if len(inner) == 0 {
		<-signals
		return 0, nil
	}
	cmd := exec.Command(inner[0], inner[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), l.environment()...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	err := cmd.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, failed.ExitCode()), nil
	}
	return 0, err
}

// environment is what a command in the sandbox finds the cluster by.
func (l layout) environment() []string {
	return []string{
		"KUBECONFIG=" + l.kubeconfig("admin"),
		"SANDBOX_STATE=" + l.state,
		"SANDBOX_BIN=" + l.bin,
		"PATH=" + l.bin + ":" + os.Getenv("PATH"),
		// Nothing in here is reached through a proxy.
		"NO_PROXY=*", "no_proxy=*",
	}
}

// bringUp starts everything and returns when pods can be scheduled, run and found by name.
func bringUp(l layout, begun time.Time) error {
	say := func(what string) {
		fmt.Fprintf(os.Stderr, "sandbox: %-40s %5.1f s\n", what, time.Since(begun).Seconds())
	}
	if err := errors.Join(layNetwork(), writePKI(l, begun)); err != nil {
		return err
	}
	if err := startAll(l, l.etcd(), l.apiServer()); err != nil {
		return err
	}
	// Whoever starts before the API server answers waits for seconds before it asks again.
	if err := l.await("the API server", "get", "--raw", "/readyz"); err != nil {
		return err
	}
	say("the API server answers")
	if err := startAll(l, l.controllerManager(), l.scheduler()); err != nil {
		return err
	}
	for _, n := range nodes() {
		if err := switchOn(l, n); err != nil {
			return err
		}
	}
	for _, n := range nodes() {
		if err := l.await("node "+n.name, "wait", "--for=condition=Ready", "--timeout=1s", "node/"+n.name); err != nil {
			return err
		}
	}
	say("the nodes are ready")
	if err := l.await("the first service account", "get", "serviceaccount", "default"); err != nil {
		return err
	}
	if err := os.WriteFile(l.record("dns"), []byte(dnsManifest), 0o644); err != nil {
		return err
	}
	if err := l.await("DNS to be accepted", "apply", "-f", l.record("dns")); err != nil {
		return err
	}
	if err := l.await("DNS", "rollout", "status", "deployment/coredns", "-n", "kube-system", "--timeout=5s"); err != nil {
		return err
	}
	say("DNS answers; the cluster is up")
	return os.WriteFile(l.up(), nil, 0o644)
}

func startAll(l layout, components ...component) error {
	for _, c := range components {
		process, err := l.start(c)
		if err != nil {
			return err
		}
		go func() { _, _ = process.Wait() }() // or it would stay as a zombie when it is stopped
	}
	return nil
}

// await repeats a call of kubectl until it succeeds.
func (l layout) await(what string, args ...string) error {
	return poll(readyPatience, what+" (logs are in "+filepath.Dir(l.log(""))+")", func() error {
		return command(l.program("kubectl"), append([]string{"--kubeconfig", l.kubeconfig("admin")}, args...)...)
	})
}
