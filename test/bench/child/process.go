package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// Process is this program once more, in another role.
type Process struct {
	// Address is where it listens, as host:port.
	Address string
	cmd     *exec.Cmd
}

// Start runs this program with arguments that give it its role, and waits until it listens.
func Start(ctx context.Context, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.CommandContext(ctx, self, args...)}
	p.cmd.Stderr = os.Stderr
	// Whoever loses its standard input ends, so that nothing outlives this process.
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
	p.Address = strings.TrimSpace(line)
	return p, nil
}

// URL is the process's base URL.
func (p *Process) URL() string { return "http://" + p.Address }

// Usage is what the kernel accounts to the process.
func (p *Process) Usage() Usage { return Usage{PID: p.cmd.Process.Pid} }

// Stop kills the process and waits for it.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed: its status says nothing
}

// Serve is the life of such a process: it listens on loopback, tells where, and ends with its parent.
func Serve(ctx context.Context, server *http.Server) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr().String())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
