package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// tool is a program that a cluster needs beside its own binaries, and the package of Debian that brings it.
type tool struct{ program, bundle string }

func tools() []tool {
	return []tool{{"ip", "iproute2"}, {"nft", "nftables"}, {"nsenter", "util-linux"}}
}

// machine is what decides whether a cluster can be brought up.
type machine struct {
	user    int                            // effective
	find    func(program string) error     // in PATH
	groups  func() ([]hierarchy, error)    // of control
	isolate func(namespaces uintptr) error // runs something in new namespaces
}

// thisMachine is the one that this process runs on.
func thisMachine() machine {
	return machine{
		user:   os.Geteuid(),
		find:   func(program string) error { _, err := exec.LookPath(program); return err },
		groups: ownHierarchies,
		isolate: func(namespaces uintptr) error {
			probe := exec.Command("true")
			probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
			return probe.Run()
		},
	}
}

// lacks says all that keeps a cluster from coming up on the machine; nil: nothing does.
func (m machine) lacks() error {
	var missing []error
	if m.user != 0 {
		missing = append(missing, errors.New("it takes root: nodes mount, and make namespaces and devices"))
	}
	for _, t := range tools() {
		if m.find(t.program) != nil {
			missing = append(missing, fmt.Errorf("there is no program %s (package %s)", t.program, t.bundle))
		}
	}
	if _, err := m.groups(); err != nil {
		missing = append(missing, err)
	}
	if m.user == 0 {
		if err := m.isolate(machineNamespaces); err != nil {
			missing = append(missing, fmt.Errorf("no namespaces can be made: %w", err))
		}
	}
	return errors.Join(missing...)
}
