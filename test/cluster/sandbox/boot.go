package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const containerdSocket = "/run/containerd/containerd.sock"

// boot is the inside of a node, from its mounts to its last program. It returns when one of these
// ends, and the node with it.
func boot(l layout, n node) error {
	if err := syscall.Sethostname([]byte(n.name)); err != nil {
		return fmt.Errorf("name of the node: %w", err)
	}
	if err := mountNode(l, n); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	if err := poll(stopPatience, "the network's cable", func() error {
		_, err := os.Stat(l.of(n, "plugged"))
		return err
	}); err != nil {
		return err
	}
	if err := configureNetwork(n); err != nil {
		return err
	}
	// containerd finds its shim there, and the shim runc.
	if err := os.Setenv("PATH", l.bin+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	ended := make(chan string, 3)
	run := func(name string, args ...string) error {
		process, err := l.start(component{Name: name + "-" + n.name, Args: append([]string{l.program(name)}, args...)})
		if err != nil {
			return err
		}
		go func() { _, _ = process.Wait(); ended <- name }() // that it ended says all
		return nil
	}
	if err := run("containerd", "--config="+l.of(n, "etc", "containerd.toml")); err != nil {
		return err
	}
	if err := importAll(l); err != nil {
		return err
	}
	if err := errors.Join(
		run("kubelet", "--kubeconfig="+l.kubeconfig(n.name), "--config="+l.of(n, "etc", "kubelet.yaml"),
			"--node-ip="+n.address(), "--hostname-override="+n.name),
		run("kube-proxy", "--config="+l.of(n, "etc", "proxy.yaml")),
	); err != nil {
		return err
	}
	return fmt.Errorf("node %s: %s has ended; see %s", n.name, <-ended, l.log(""))
}

// mountNode gives the node what a machine has of its own: devices' view, groups, sysctls, state.
func mountNode(l layout, n node) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts with containers: %w", err)
	}
	if err := syscall.Unmount("/sys", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's /sys: %w", err)
	}
	if err := syscall.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := mountGroups(); err != nil {
		return err
	}
	for _, name := range sysctls {
		if err := bind(l.of(n, "sysctl", filepath.Base(name)), "/proc/sys/"+name); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{
		"kubelet": "/var/lib/kubelet", "containerd": "/var/lib/containerd", "varlog": "/var/log",
	} {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := bind(l.of(n, from), to); err != nil {
			return err
		}
	}
	// Volumes that the kubelet mounts have to be seen by containers.
	if err := syscall.Mount("none", "/var/lib/kubelet", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share /var/lib/kubelet: %w", err)
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	return os.MkdirAll("/run/netns", 0o755)
}

func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", to, err)
	}
	return nil
}

// importAll puts every archive of the folder of images on this node.
func importAll(l layout) error {
	if err := poll(time.Minute, "containerd", func() error {
		_, err := os.Stat(containerdSocket)
		return err
	}); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(l.images(), "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if err := command(l.program("ctr"), importing(archive)...); err != nil {
			return err
		}
	}
	return nil
}

func importing(archive string) []string {
	return []string{"--address", containerdSocket, "--namespace", "k8s.io", "images", "import", archive}
}
