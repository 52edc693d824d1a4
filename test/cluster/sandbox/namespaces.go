package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// sandboxNamespaces are what the whole cluster has of its own, machineNamespaces what a node has
// beyond that.
const (
	sandboxNamespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	machineNamespaces = sandboxNamespaces | syscall.CLONE_NEWCGROUP
)

// self is this program under another of its roles.
func self(role string, args ...string) []string {
	return append([]string{"/proc/self/exe", role}, args...)
}

// enter runs this program in a role inside new namespaces, as their first process. It ends, and
// all of them with it, when this process does.
func enter(flags uintptr, files []*os.File, args []string) (*os.Process, error) {
	// The kernel sends the signal of a parent's death when the thread that cloned ends.
	runtime.LockOSThread()
	process, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Env: os.Environ(), Files: files,
		Sys: &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, fmt.Errorf("new namespaces (this needs root): %w", err)
	}
	return process, nil
}

// beFirst is the life of a first process: it makes the namespace's own /proc, starts the child,
// reaps whatever is orphaned to it, and ends with the child's status.
func beFirst(args []string) (int, error) {
	if err := mountProc(); err != nil {
		return 0, err
	}
	// Asked to end, the child decides.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	child, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = child.Signal(s) // it may have ended
		}
	}()
	return reapUntil(child.Pid)
}

// reapUntil waits for every child until a certain one ends.
func reapUntil(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for children: %w", err)
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}

// mountProc keeps what is mounted from now on to these namespaces, and shows their processes.
func mountProc() error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
