package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// component is one program of the cluster. Where it runs and what it is called by is all that is
// needed to start it again.
type component struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // the program's path first
	PID  int      `json:"pid"`
}

// stopPatience bounds how long a killed process may take to be gone.
const stopPatience = 10 * time.Second

// start runs the component in the background, its output appended to its log, and records it.
func (l layout) start(c component) (*os.Process, error) {
	log, err := os.OpenFile(l.log(c.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer nothing.Close()
	process, err := os.StartProcess(c.Args[0], c.Args, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{nothing, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	c.PID = process.Pid
	return process, l.write(c)
}

func (l layout) write(c component) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(l.record(c.Name), text, 0o644)
}

// component reads the record of a component that was started.
func (l layout) component(name string) (component, error) {
	var c component
	text, err := os.ReadFile(l.record(name))
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s has not been started here", name)
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// stop kills a component and returns once it is gone.
func (l layout) stop(name string) error {
	c, err := l.component(name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(c.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return poll(stopPatience, name+" to be gone", func() error {
		if running(c.PID) {
			return errors.New("it still runs")
		}
		return nil
	})
}

// restart starts a component that was stopped, as it was.
func (l layout) restart(name string) error {
	c, err := l.component(name)
	if err != nil {
		return err
	}
	if running(c.PID) {
		return fmt.Errorf("%s runs already", name)
	}
	_, err = l.start(c)
	return err
}

// running says whether a process is there and not merely waiting to be reaped.
func running(pid int) bool {
	state, _, err := processStat(pid)
	return err == nil && state != "Z" && state != "X"
}

// processStat reads a process's state and the time of its start, which together with its number
// names it for good.
func processStat(pid int) (state, started string, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", "", err
	}
	// The second field is the program's name in brackets and may hold anything.
	_, rest, found := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return "", "", fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	return fields[0], fields[19], nil
}

// hopeless is an error that waiting cannot mend.
type hopeless struct{ error }

// poll calls look until it returns nil, its error is hopeless, or patience ends.
func poll(patience time.Duration, what string, look func() error) error {
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := look()
		if err == nil {
			return nil
		}
		if errors.As(err, &hopeless{}) {
			return err
		}
		select {
		case <-deadline:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case <-tick.C:
		}
	}
}
