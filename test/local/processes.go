package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// errStopped is returned to whoever starts a process after Close.
var errStopped = errors.New("the local system is stopping")

// Command says what to run.
type Command struct {
	// Name is what the process is called in messages; its output goes to a
	// file of that name in the log folder.
	Name string
	Path string
	Args []string
}

// Processes starts processes that cannot outlive this one. The kernel kills a
// child when the *thread* that started it ends, so one goroutine that never
// leaves its thread starts them all.
type Processes struct {
	logDir string
	starts chan start
	closed chan struct{}
	close  sync.Once

	mu      sync.Mutex
	started []*Process // guarded by mu, in the order of their start
}

type start struct {
	cmd   *exec.Cmd
	reply chan error
}

// NewProcesses returns a starter that keeps the output of each process in
// logDir, which it makes. The caller closes it.
func NewProcesses(logDir string) (*Processes, error) {
	if err := os.MkdirAll(logDir, 0o755); err != nil {
		return nil, fmt.Errorf("folder for logs: %w", err)
	}
	p := &Processes{logDir: logDir, starts: make(chan start), closed: make(chan struct{})}
	go p.serve()
	return p, nil
}

func (p *Processes) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case s := <-p.starts:
			s.reply <- s.cmd.Start()
		case <-p.closed:
			return
		}
	}
}

// Start runs a command. A process of the same name may have run before; its
// output is kept and the new one's follows.
func (p *Processes) Start(c Command) (*Process, error) {
	out, err := os.OpenFile(p.LogPath(c.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", c.Name, err)
	}
	defer out.Close()                      // the child has its own descriptor
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // it outlives the call that starts it; Close ends it
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own keeps the terminal's Ctrl-C away from the child: it
	// comes to us, and we stop what we started in the right order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s := start{cmd: cmd, reply: make(chan error, 1)}
	select {
	case p.starts <- s:
	case <-p.closed:
		return nil, errStopped
	}
	if err := <-s.reply; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	proc := &Process{name: c.Name, cmd: cmd, done: make(chan struct{})}
	p.mu.Lock()
	p.started = append(p.started, proc)
	p.mu.Unlock()
	go proc.wait()
	return proc, nil
}

// LogPath returns the file that holds the output of the process of that name.
func (p *Processes) LogPath(name string) string {
	return filepath.Join(p.logDir, name+".log")
}

// Running names the processes that have not ended.
func (p *Processes) Running() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, proc := range p.started {
		select {
		case <-proc.done:
		default:
			names = append(names, proc.name)
		}
	}
	return names
}

// Close kills whatever still runs and waits until it is gone.
func (p *Processes) Close() {
	p.mu.Lock()
	started := slices.Clone(p.started)
	p.mu.Unlock()
	for _, proc := range slices.Backward(started) {
		proc.Kill()
		<-proc.done
	}
	p.close.Do(func() { close(p.closed) })
}

// Process is one that Processes started.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // written before done is closed
	// expected is set before the process is asked to end.
	expected atomic.Bool
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// Name returns what the process is called in messages.
func (p *Process) Name() string { return p.name }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended. It may be called once Done is closed.
func (p *Process) Err() error { return p.err }

// Kill ends the process and its children at once.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Signal sends a signal to the process and its children, unless it has ended.
func (p *Process) signal(sig syscall.Signal) {
	p.expected.Store(true)
	select {
	case <-p.done:
	default:
		// The group may be gone by now, which is what was wanted.
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// stop asks processes to end, all at once, and kills those that have not after
// the given time or once ctx is done.
func stop(ctx context.Context, patience time.Duration, processes ...*Process) {
	for _, p := range processes {
		p.signal(syscall.SIGTERM)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range processes {
		select {
		case <-p.done:
		case <-ctx.Done():
			p.Kill()
			<-p.done
		}
	}
}
