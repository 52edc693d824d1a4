package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asParent makes this test binary, run again, the parent of a process.
const asParent = "BERTHMASTER_TEST_PARENT_LOGS"

func TestMain(m *testing.M) {
	if logs := os.Getenv(asParent); logs != "" {
		parent(logs)
	}
	os.Exit(m.Run())
}

// parent starts a process, says its number and waits to be killed.
func parent(logs string) {
	processes, err := NewProcesses(logs)
	if err != nil {
		panic(err)
	}
	child, err := processes.Start(Command{Name: "child", Path: "/bin/sh", Args: []string{"-c", "while :; do read line; done </dev/zero"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(child.cmd.Process.Pid)
	<-child.Done()
	os.Exit(1)
}

func TestProcessesDieWithTheirParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed, and says so
	waitGone(t, pid)
}

func TestCloseLeavesNoProcessBehind(t *testing.T) {
	processes := newProcesses(t)
	var pids []int
	for range 3 {
		// The shell's own child ignores the polite signal and shares its group.
		p := startShell(t, processes, `(trap "" TERM; while :; do sleep 1; done) & wait`)
		pids = append(pids, p.cmd.Process.Pid)
	}
	processes.Close()
	for _, pid := range pids {
		waitGone(t, -pid)
	}
	if _, err := processes.Start(Command{Name: "late", Path: "/bin/true"}); !errors.Is(err, errStopped) {
		t.Errorf("Start after Close gave %v, want %v", err, errStopped)
	}
}

func TestStopKillsWhoeverDoesNotListen(t *testing.T) {
	processes := newProcesses(t)
	polite := startShell(t, processes, `trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done`)
	deaf := startShell(t, processes, `trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	waitLog(t, processes.LogPath("shell"), "ready\nready\n")
	stop(t.Context(), time.Second, polite, deaf)
	if polite.Err() != nil {
		t.Errorf("the process that listens ended with %v, want its own exit", polite.Err())
	}
	if deaf.Err() == nil || !strings.Contains(deaf.Err().Error(), "killed") {
		t.Errorf("the process that does not listen ended with %v, want to be killed", deaf.Err())
	}
}

func TestStartNamesThePathThatDoesNotExist(t *testing.T) {
	processes := newProcesses(t)
	_, err := processes.Start(Command{Name: "etcd", Path: "/nowhere/etcd"})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/etcd") {
		t.Errorf("Start gave %v, want an error that names the path", err)
	}
}

func newProcesses(t *testing.T) *Processes {
	t.Helper()
	processes, err := NewProcesses(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(processes.Close)
	return processes
}

func startShell(t *testing.T, processes *Processes, script string) *Process {
	t.Helper()
	p, err := processes.Start(Command{Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waitGone waits until no process has that number, or no group its negative.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	err := until(t.Context(), time.Minute, "process to be gone", func(_ context.Context) error {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if orphaned(pid) {
			return nil
		}
		return fmt.Errorf("process %d lives", pid)
	})
	if err != nil {
		t.Error(err)
	}
}

// orphaned reports whether what is left of a process is an entry that the
// machine's first process has not collected.
func orphaned(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func waitLog(t *testing.T, path, want string) {
	t.Helper()
	err := until(t.Context(), time.Minute, "log of the shells", func(_ context.Context) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if string(text) != want {
			return fmt.Errorf("log is %q", text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
