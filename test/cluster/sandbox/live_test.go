//go:build live

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var root = flag.String("root", "../../..", "folder of the project")

// traces are what a cluster might leave on the machine: programs that run, mounts, devices of the
// network, control groups.
func traces(t *testing.T, bin string) []string {
	t.Helper()
	var found []string
	programs, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range programs {
		// One that has ended meanwhile is no trace.
		if program, err := os.Readlink(link); err == nil && strings.HasPrefix(program, bin+"/") && !strings.HasSuffix(program, ".test") {
			found = append(found, "runs: "+program)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		found = append(found, "mount: "+strings.TrimSpace(line))
	}
	devices, err := filepath.Glob("/sys/class/net/*")
	if err != nil {
		t.Fatal(err)
	}
	trees, err := ownHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range trees {
		groups, err := filepath.Glob(filepath.Join(groupRoot, tree.folder, tree.own, "sandbox-cluster-*"))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups...)
	}
	found = append(found, devices...)
	slices.Sort(found)
	return found
}

// runMake runs a target as a person does.
func runMake(t *testing.T, target string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "make", "-C", *root, target).CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
}

func TestAClusterForPeopleIsUsedAndLeavesNothing(t *testing.T) {
	bin, err := filepath.Abs(filepath.Join(*root, "bin", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	before := traces(t, bin)
	runMake(t, "cluster-up")
	up := true
	t.Cleanup(func() {
		if up { // the test's own context has ended
			_ = exec.Command("make", "-C", *root, "cluster-down").Run()
		}
	})
	if slices.Equal(traces(t, bin), before) {
		t.Error("nothing runs that could leave anything")
	}
	kubectl := exec.CommandContext(t.Context(), filepath.Join(bin, "sandbox"), "exec", "kubectl", "get", "nodes", "--no-headers")
	kubectl.Dir = *root
	nodes, err := kubectl.CombinedOutput()
	if err != nil || strings.Count(string(nodes), " Ready ") != 2 {
		t.Fatalf("the nodes are (%v)\n%s", err, nodes)
	}
	runMake(t, "cluster-down")
	up = false
	if err := poll(30*time.Second, "its last traces to go", func() error {
		left := slices.DeleteFunc(traces(t, bin), func(trace string) bool { return slices.Contains(before, trace) })
		if len(left) == 0 {
			return nil
		}
		return errLeft(left)
	}); err != nil {
		t.Error(err)
	}
}

// errLeft lists what is left.
type errLeft []string

func (e errLeft) Error() string { return strings.Join(e, "\n") }
