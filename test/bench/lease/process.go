package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// process is one of the servers.
type process struct {
	address string
	cmd     *exec.Cmd
}

// start runs this program in another role and waits until it listens.
func start(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, args...)}
	p.cmd.Stderr = os.Stderr
	// A server ends when its standard input does, so that none outlives this process.
	if _, err := p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%v did not come up", args), err, p.cmd.Wait())
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed: its status says nothing
}

// throughput is what n clients make of the server, and the processor time that it spends on
// each pair of calls: the one figure that other work on the machine does not change.
func (p *process) throughput(ctx context.Context, n int, length time.Duration) (rate float64, each time.Duration, err error) {
	before, err := p.spent()
	if err != nil {
		return 0, 0, err
	}
	rate, err = throughput(ctx, p.address, n, length)
	if err != nil {
		return 0, 0, err
	}
	after, err := p.spent()
	if err != nil {
		return 0, 0, err
	}
	return rate, time.Duration(float64(after-before) / (rate * length.Seconds())).Round(100 * time.Nanosecond), nil
}

// clockTick is the unit of processor time in /proc, on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// spent is the processor time of the process so far.
func (p *process) spent() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; user and system time are the 12th and 13th after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("the process's times are not where they should be")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, other := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err, other)
}
