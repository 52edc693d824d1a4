package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// freezePatience bounds how long a process may take to stand still.
const freezePatience = 10 * time.Second

// Freeze stops the process where it is, until Thaw. It returns once every thread stands still.
func (r *Replica) Freeze() error {
	r.frozen.Store(true)
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop %s: %w", r.Name(), err)
	}
	return until(context.Background(), freezePatience, r.Name()+" to stand still", func(context.Context) error {
		return standsStill(r.cmd.Process.Pid)
	})
}

// Thaw lets a frozen process go on.
func (r *Replica) Thaw() error {
	r.frozen.Store(false)
	return syscall.Kill(-r.cmd.Process.Pid, syscall.SIGCONT)
}

// standsStill looks at the state of every thread, which follows the name in parentheses.
func standsStill(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return errors.Join(errors.New("no threads are found"), err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return err
		}
		state := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if !strings.HasPrefix(state, " T") {
			return fmt.Errorf("the state of a thread is%.2s", state)
		}
	}
	return nil
}
