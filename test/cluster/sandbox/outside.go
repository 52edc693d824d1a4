package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// errNotUp is for whoever wants something of a cluster that is not there.
var errNotUp = errors.New("no cluster is up; bring one up with: make cluster-up")

// recordSandbox notes the sandbox's first process so that no other can be taken for it.
func recordSandbox(l layout, pid int) error {
	_, started, err := processStat(pid)
	if err != nil {
		return err
	}
	return l.write(component{Name: "sandbox", Args: []string{started}, PID: pid})
}

// sandboxPID is the sandbox's first process, as it is numbered outside.
func sandboxPID(l layout) (int, error) {
	c, err := l.component("sandbox")
	if err != nil {
		return 0, errNotUp
	}
	state, started, err := processStat(c.PID)
	if err != nil || state == "Z" || len(c.Args) != 1 || c.Args[0] != started {
		return 0, errNotUp
	}
	return c.PID, nil
}

// awaitUp returns when a cluster that somebody else brings up is up, or has failed to come up.
func awaitUp(l layout) error {
	begun := false
	return poll(2*readyPatience, "the cluster; what it says is in .cache/cluster.log", func() error {
		_, err := sandboxPID(l)
		switch {
		case err != nil && begun:
			return hopeless{errors.New("it has ended again")}
		case err != nil:
			return err
		}
		begun = true
		_, err = os.Stat(l.up())
		return err
	})
}

// down ends the cluster and returns when nothing of it runs.
func down(l layout) error {
	pid, err := sandboxPID(l)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("end the sandbox: %w", err)
	}
	if err := poll(stopPatience, "the sandbox to end", func() error {
		if running(pid) {
			return errors.New("it still runs")
		}
		return nil
	}); err != nil {
		return err
	}
	return removeGroups(l)
}

// join replaces this process by a command in the sandbox, unless it is there already.
func join(l layout, command []string) error {
	pid, err := sandboxPID(l)
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	args := append([]string{
		"nsenter", "--target=" + strconv.Itoa(pid), "--mount", "--pid", "--net", "--ipc", "--uts", "--wd=" + here, "--",
	}, command...)
	return syscall.Exec(nsenter, args, append(os.Environ(), l.environment()...))
}

// load puts images on every node.
func load(l layout, archives []string) error {
	for _, n := range nodes() {
		first, err := l.component(n.name)
		if err != nil {
			return err
		}
		for _, archive := range archives {
			args := append([]string{"--target=" + strconv.Itoa(first.PID), "--mount", "--", l.program("ctr")}, importing(archive)...)
			if err := command("nsenter", args...); err != nil {
				return fmt.Errorf("load %s into %s: %w", archive, n.name, err)
			}
		}
	}
	return nil
}
