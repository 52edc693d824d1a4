package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const groupRoot = "/sys/fs/cgroup"

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	folder string // below groupRoot, and the mount's controllers
	own    string // the group that this process is in
}

// errNoGroups says that the machine is of a kind that is not catered for.
var errNoGroups = errors.New("control groups of version 1 are not mounted under " + groupRoot + ", and nodes need them")

// hierarchies reads /proc/self/cgroup: lines like "4:memory:/some/group".
func hierarchies(text string) ([]hierarchy, error) {
	var found []hierarchy
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 || fields[1] == "" {
			continue // the one of version 2, which has no controllers here
		}
		found = append(found, hierarchy{folder: strings.TrimPrefix(fields[1], "name="), own: fields[2]})
	}
	for _, h := range found {
		if h.folder == "memory" {
			return found, nil
		}
	}
	return nil, errNoGroups
}

func ownHierarchies() ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return hierarchies(string(text))
}

// joinGroups makes a group of its own for this process in every hierarchy, and notes where.
func joinGroups(l layout, name string) error {
	trees, err := ownHierarchies()
	if err != nil {
		return err
	}
	notes, err := os.OpenFile(l.groups(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer notes.Close()
	for _, tree := range trees {
		group := filepath.Join(groupRoot, tree.folder, tree.own, name)
		if _, err := fmt.Fprintln(notes, group); err != nil {
			return err
		}
		if err := joinGroup(group, tree.folder); err != nil {
			return fmt.Errorf("control group %s: %w", group, err)
		}
	}
	return nil
}

func joinGroup(group, controllers string) error {
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	if strings.Contains(controllers, "cpuset") {
		// A new group of this controller may use nothing until it is told what.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(group), file))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(group, file), text, 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0o644)
}

// mountGroups shows a node its own groups as the roots of their trees.
func mountGroups() error {
	trees, err := ownHierarchies()
	if err != nil {
		return err
	}
	if err := syscall.Mount("cgroup", groupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", groupRoot, err)
	}
	for _, tree := range trees {
		options := tree.folder
		if tree.folder == "systemd" {
			options = "name=systemd,none"
		}
		at := filepath.Join(groupRoot, tree.folder)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("cgroup", at, "cgroup", 0, options); err != nil {
			return fmt.Errorf("mount control groups %s: %w", tree.folder, err)
		}
	}
	return nil
}

// removeGroups removes the empty groups that a cluster has left. The kernel lets go of them a moment
// after their last process.
func removeGroups(l layout) error {
	text, err := os.ReadFile(l.groups())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	groups := strings.Fields(string(text))
	return poll(10*time.Second, "control groups to be empty", func() error {
		var left error
		for _, group := range groups {
			left = errors.Join(left, removeTree(group))
		}
		return left
	})
}

// removeTree removes a group and those below it, the deepest first.
func removeTree(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(group)
}
