package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// actAsCommand, in the environment, makes the test binary be the command.
const actAsCommand = "SGLANG_SIM_TEST_ACT_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(actAsCommand) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process is the command as a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"--port", "0"}, args...)...)
	cmd.Env = append(os.Environ(), actAsCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &process{cmd: cmd, url: strings.TrimSpace(line[strings.LastIndex(line, " "):])}
}

// code waits for the process to end and returns its exit status; -1 if a signal killed it.
func (p *process) code(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) post(t *testing.T, path, body string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Turn", "1")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

const long = `{"text":"x","session_id":"s","rid":"first","sampling_params":{"max_new_tokens":400000,"ignore_eos":true}}`
const short = `{"text":"x","session_id":"s","rid":"second","sampling_params":{"max_new_tokens":2}}`

func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ready() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func records(t *testing.T, dir string) []execlog.Record {
	t.Helper()
	out, err := execlog.ReadFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// killedAndReplayed runs an engine, kills it in the middle of an execution, and executes the turn again on the
// next life of it.
func killedAndReplayed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	p := startProcess(t, "--name", "b0", "--exec-log", dir)
	done := make(chan error, 1)
	go func() { done <- p.post(t, "/generate", long) }()
	until(t, "the execution is on record", func() bool { return len(records(t, dir)) == 2 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code(t)
	if err := <-done; err == nil {
		t.Error("the client of a killed engine got a reply")
	}
	next := startProcess(t, "--name", "b0", "--exec-log", dir, "--speed", "100")
	if err := next.post(t, "/generate", short); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAKilledEngineAndItsNextLifeTellTheStory(t *testing.T) {
	dir := killedAndReplayed(t)
	got := records(t, dir)
	if len(got) != 5 || got[1].Event != execlog.Start || got[2].Event != execlog.Boot || got[4].Outcome != execlog.Finished {
		t.Fatalf("boot, start; boot, start, finish: %+v", got)
	}
	if got[0].Life == got[2].Life || got[1].Turn != "1" || got[1].Session != "s" {
		t.Errorf("%+v", got)
	}
}

func TestCheckDemandsThatTheKilledOneWasDeadFirst(t *testing.T) {
	dir := killedAndReplayed(t)
	if code, out, _ := command(t, "check", "--log", dir); code != exitViolation || !strings.Contains(out, "NOT ALLOWED") {
		t.Errorf("without a client's log: %d\n%s", code, out)
	}
	client := filepath.Join(t.TempDir(), "client.jsonl")
	w, err := execlog.Open(client, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := records(t, dir)
	dead := execlog.ClientRecord{Time: all[2].Time, Session: "s", Turn: "1", RID: "first", Event: execlog.Dead}
	if err := errors.Join(w.Append(dead), w.Close()); err != nil {
		t.Fatal(err)
	}
	code, out, _ := command(t, "check", "--log", dir, "--client-log", client, "--strict", "-o", "turns")
	if code != 0 || !strings.Contains(out, "session s turn 1: 2 executions") {
		t.Errorf("with Dead before the second start: %d\n%s", code, out)
	}
}

func TestCheckStrictWantsEveryLossReported(t *testing.T) {
	dir := t.TempDir()
	log, client := filepath.Join(dir, "b"+execlog.Suffix), filepath.Join(dir, "client.jsonl")
	write := func(path string, v any) {
		w, err := execlog.Open(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(v), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(log, execlog.Record{Event: execlog.Start, Session: "s", Turn: "1", RID: "r"})
	write(client, execlog.ClientRecord{Session: "s", Turn: "1", RID: "r", Event: execlog.Sent})
	args := []string{"check", "--log", log, "--client-log", client}
	if code, _, _ := command(t, args...); code != 0 {
		t.Errorf("not strict: %d", code)
	}
	if code, out, _ := command(t, append(args, "--strict")...); code != exitUnreported || !strings.Contains(out, "not reported") {
		t.Errorf("strict: %d\n%s", code, out)
	}
	code, out, _ := command(t, append(args, "-o", "json")...)
	var report execlog.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || len(report.Unreported) != 1 {
		t.Errorf("json: %d, %v\n%s", code, err, out)
	}
}

func TestSIGTERMDrainsAndExitsWithZero(t *testing.T) {
	p := startProcess(t, "--exit-poll", "10ms")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestSIGINTEndsItAtOnce(t *testing.T) {
	p := startProcess(t)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != exitInterrupted {
		t.Errorf("exit status %d", code)
	}
}

func TestTheExitFaultIsTheProcessesExitStatus(t *testing.T) {
	p := startProcess(t, "--fault", `{"kind":"exit","after":1,"code":42}`)
	if err := p.post(t, "/generate", short); err == nil {
		t.Error("the request was answered")
	}
	if code := p.code(t); code != 42 {
		t.Errorf("exit status %d", code)
	}
}

func TestHelpGroupsTheKnobs(t *testing.T) {
	code, out, _ := command(t, "--help")
	last := -1
	for _, title := range []string{"Engine, named", "Timing model:", "Simulated time:", "Faults and older forms:", "Execution log:"} {
		at := strings.Index(out, title)
		if at <= last {
			t.Errorf("%q is missing or out of order", title)
		}
		last = at
	}
	if code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"speed":         {"--speed", "fast"},
		"Speed":         {"--speed", "-1"},
		"--fault":       {"--fault", "hang"},
		"kind":          {"--fault", `{"kind":"explode"}`},
		"Legacy":        {"--legacy-api", "sometimes"},
		"exec-log-sync": {"--exec-log-sync", "-1s"},
		"execution log": {"--exec-log", "/nowhere/at/all"},
		"--log":         {"check"},
		"no file in":    {"check", "--log", t.TempDir()},
		"--output":      {"check", "--log", "main.go", "-o", "poem"},
	} {
		if code, _, stderr := command(t, args...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %q", args, code, stderr)
		}
	}
}

// TestEveryFlagReachesTheEngine sets every flag that shapes the configuration and looks for it there.
func TestEveryFlagReachesTheEngine(t *testing.T) {
	o := defaultOptions()
	groups := o.flags()
	before, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{
		"fault": `{"kind":"hang"}`, "legacy-api": "also", "speed": "3", "api-key": "k", "admin-api-key": "k",
		"model-path": "m", "served-model-name": "n", "weight-version": "w", "name": "b", "host": "::1", "port": "77",
		"exec-log": "x",
	}
	for _, g := range groups {
		for _, f := range flagsOf(g) {
			v, known := values[f.Name]
			switch {
			case known:
			case f.Value.Type() == "bool":
				v = "true"
			case f.Value.Type() == "duration":
				v = "123ms"
			default:
				v = "321"
			}
			if err := f.Value.Set(v); err != nil {
				t.Fatalf("--%s %s: %v", f.Name, v, err)
			}
			after, err := o.config()
			if err != nil {
				t.Fatalf("--%s %s: %v", f.Name, v, err)
			}
			changed := !equalConfigs(t, before, after)
			if outside := map[string]bool{"exec-log": true, "exec-log-sync": true}[f.Name]; changed == outside {
				t.Errorf("--%s %s: the configuration changed: %v", f.Name, v, changed)
			}
			before = after
		}
	}
	if o.addr() != "[::1]:77" {
		t.Errorf("address %s", o.addr())
	}
}
