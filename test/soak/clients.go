package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
)

// instructions are what a process of clients is started with.
type instructions struct {
	// Do is the name of one of the roles.
	Do   string
	Addr string
	// Clients work at the same time; Count is how much they do together.
	Clients, Count int
}

// instructionsVariable carries them.
const instructionsVariable = "SOAK_CLIENTS"

// clientsIfAsked is main of the process of clients; false: this process is another.
func clientsIfAsked(out io.Writer) (bool, error) {
	text, asked := os.LookupEnv(instructionsVariable)
	if !asked {
		return false, nil
	}
	var in instructions
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return true, fmt.Errorf("%s: %w", instructionsVariable, err)
	}
	role := roles()[in.Do]
	if role == nil {
		return true, fmt.Errorf("%s: no role %q", instructionsVariable, in.Do)
	}
	var all sync.WaitGroup
	errs := make(chan error, in.Clients)
	counts := make([]tally, in.Clients)
	var taken atomic.Int64
	next := func() (int, bool) {
		n := int(taken.Add(1))
		return n, n <= in.Count
	}
	for i := range in.Clients {
		all.Go(func() {
			c := newClient(fmt.Sprint(in.Do, "-", i), in.Addr, uint64(i))
			c.next = next
			defer c.http.CloseIdleConnections()
			if err := role(c); err != nil {
				errs <- fmt.Errorf("client %s: %w", c.name, err)
			}
			counts[i] = c.counts
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return true, err
	default:
	}
	return true, json.NewEncoder(out).Encode(sum(counts))
}

// role is what one client does, until nothing is left to do.
type role func(c *client) error

func roles() map[string]role {
	return map[string]role{"soak": (*client).soak, "ids": (*client).floodIDs, "forged": (*client).forge, "wait": (*client).waitOnce}
}

// tally counts what clients were answered, by name.
type tally map[string]int

func sum(all []tally) tally {
	out := tally{}
	for _, one := range all {
		for name, n := range one {
			out[name] += n
		}
	}
	return out
}

// process is a process of clients under way.
type process struct {
	cmd *exec.Cmd
	out strings.Builder
}

// start starts the clients.
func start(in instructions) (*process, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self)} //nolint:noctx // ended by wait or kill, whose caller knows when
	p.cmd.Env = append(os.Environ(), instructionsVariable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
	return p, p.cmd.Start()
}

// wait returns what the clients counted, once they have done everything.
func (p *process) wait() (tally, error) {
	if err := p.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("the clients failed: %w", err)
	}
	var t tally
	if err := json.Unmarshal([]byte(p.out.String()), &t); err != nil {
		return nil, fmt.Errorf("what the clients counted: %w", err)
	}
	return t, nil
}

// kill ends the clients at once, as a node that dies does.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // says that it was killed
	return nil
}
