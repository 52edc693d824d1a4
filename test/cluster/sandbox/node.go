package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sysctls are settings of the whole machine that a kubelet writes. A node gets files of its own in
// their place.
var sysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"}

// prepareNode writes what a node's programs read.
func prepareNode(l layout, n node) error {
	for _, folder := range []string{"kubelet", "containerd", "network", "etc", "sysctl", "varlog"} {
		if err := os.MkdirAll(l.of(n, folder), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"network/10-bridge.conflist": bridgeConfig(n),
		"etc/containerd.toml":        containerdConfig(l, n),
		"etc/kubelet.yaml":           kubeletConfig(l, n),
		"etc/proxy.yaml":             proxyConfig(l, n),
		// Pods with dnsPolicy Default find nobody there.
		"etc/resolv.conf": "nameserver 127.0.0.1\n",
	} {
		if err := os.WriteFile(l.of(n, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range sysctls {
		if err := copySysctl(l, n, name); err != nil {
			return err
		}
	}
	return nil
}

func copySysctl(l layout, n node, name string) error {
	from, err := os.Open("/proc/sys/" + name)
	if err != nil {
		return err
	}
	defer from.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return os.WriteFile(l.of(n, "sysctl", filepath.Base(name)), text, 0o644)
}

// switchOn starts a node: its first process in a group and namespaces of its own, then its network.
// The node begins its work once the network is there.
func switchOn(l layout, n node) error {
	if err := prepareNode(l, n); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	if _, err := l.start(component{Name: "machine-" + n.name, Args: self("machine", l.bin, l.state, n.name)}); err != nil {
		return err
	}
	var first component
	err := poll(stopPatience, "the first process of "+n.name, func() (err error) {
		first, err = l.component(n.name)
		return err
	})
	if err != nil {
		return err
	}
	if err := plugIn(n, first.PID); err != nil {
		return err
	}
	return os.WriteFile(l.of(n, "plugged"), nil, 0o644)
}

// runMachine is the process that a node hangs from. It joins the node's groups before the namespaces
// are made, since the root of a namespace of groups is the group of whoever makes it.
func runMachine(l layout, n node) (int, error) {
	if err := joinGroups(l, fmt.Sprintf("sandbox-%s-%s", filepath.Base(l.state), n.name)); err != nil {
		return 0, err
	}
	first, err := enter(machineNamespaces, []*os.File{os.Stdin, os.Stdout, os.Stderr},
		self("first", "/proc/self/exe", "boot", l.bin, l.state, n.name))
	if err != nil {
		return 0, err
	}
	if err := l.write(component{Name: n.name, Args: []string{strings.Join(self("first"), " ")}, PID: first.Pid}); err != nil {
		return 0, err
	}
	state, err := first.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), nil
}
