package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// runPatience bounds the waits for what a real pool takes its time for, a take-over included.
const runPatience = 2 * time.Minute

// run is one scenario on the stage. Words to wait for:
//
//	request*N   engines have begun N executions
//	counted*N   the router counts N executions
//	waiting*N   N acquires wait at the router
//	drained     what is to be drained is
//
// Without *N it is one.
type run struct {
	stage    *stage
	scenario conformance.Scenario
	begun    time.Time
	// drained is the engine that Drain was about, killed that of Kill; empty: none.
	drained, killed string
}

func newRun(s *stage, scenario conformance.Scenario) *run {
	return &run{stage: s, scenario: scenario, begun: time.Now()}
}

// Offer says how the pool is reached.
func (r *run) Offer() conformance.Offer {
	return conformance.Offer{BaseURL: r.stage.system.PoolURL(), RouterToken: "of-nobody", EngineKey: "of-none"}
}

// errNoWord: a scenario waits for something that this stage does not know.
var errNoWord = errors.New("there is no such word")

// Await waits until the pool is as a word says.
func (r *run) Await(ctx context.Context, word string) error {
	kind, number, counted := strings.Cut(word, "*")
	want := 1
	if counted {
		var err error
		if want, err = strconv.Atoi(number); err != nil {
			return err
		}
	}
	if kind == "drained" {
		return r.stage.system.Until(ctx, r.drained+" to be drained", r.isDrained)
	}
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		got, err := r.count(ctx, kind)
		if err == nil && got == want || errors.Is(err, errNoWord) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %s: there are %d, %w", word, got, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

func (r *run) count(ctx context.Context, kind string) (int, error) {
	if kind == "request" {
		records, err := r.records()
		n := 0
		for _, record := range records {
			if record.Event == execlog.Start {
				n++
			}
		}
		return n, err
	}
	live, err := r.stage.system.Live(ctx)
	if err != nil {
		return 0, err // a manager that is away for a moment is asked again
	}
	switch kind {
	case "waiting":
		return live.Waiting, nil
	case "counted":
		n := 0
		for _, b := range live.Backends {
			n += int(b.Outstanding)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%w: %s", errNoWord, kind)
}

// records are what the engines have written down since the run began.
func (r *run) records() ([]execlog.Record, error) {
	all, err := execlog.ReadFiles(r.stage.system.ExecutionLogs())
	var ours []execlog.Record
	begun := map[string]bool{}
	for _, record := range all {
		if record.Event == execlog.Start && record.Time.After(r.begun) {
			begun[record.RID] = true
		}
		if begun[record.RID] {
			ours = append(ours, record)
		}
	}
	return ours, err
}

func (r *run) isDrained(p *v1alpha1.InferencePool) error {
	for _, b := range p.Status.Backends {
		if b.Name == r.drained && b.State == v1alpha1.BackendDrained {
			return nil
		}
	}
	return errNotYet
}

// errNoAct: a scenario wants something done that this stage cannot do.
var errNoAct = errors.New("nobody can do that")

// Act is what the owner does to the pool, or what befalls it.
func (r *run) Act(ctx context.Context, step conformance.Step) error {
	switch step.Does {
	case conformance.Change:
		return r.change(ctx, step.Spec)
	case conformance.Drain:
		home, err := r.home(ctx, step)
		if err != nil {
			return err
		}
		r.drained = home
		return r.change(ctx, map[string]any{"drain": []any{map[string]any{"backend": home, "sessions": "Move"}}})
	case conformance.Undrain:
		return r.change(ctx, map[string]any{"drain": nil})
	case conformance.Kill:
		return r.kill(ctx, step)
	case conformance.Abort:
		return r.stage.engines(ctx, http.MethodPost, "/abort_request", map[string]any{"abort_all": true})
	case conformance.Disarm:
		return r.stage.engines(ctx, http.MethodDelete, "/sim/faults", nil)
	case conformance.TakeOver:
		return r.takeOver(ctx)
	}
	return fmt.Errorf("%w: %s", errNoAct, step.Does)
}

// home is the engine on which a step's session is.
func (r *run) home(ctx context.Context, step conformance.Step) (string, error) {
	var session struct {
		Backend struct {
			Name string `json:"name"`
		} `json:"backend"`
	}
	err := r.stage.get(ctx, "/sessions/"+sessionOf(step)+"?sender="+conformance.Sender, &session)
	return session.Backend.Name, err
}

func sessionOf(step conformance.Step) string {
	if step.Session == "" {
		return conformance.SessionID
	}
	return step.Session
}

// kill ends an engine as a crash would; the kubelet says so.
func (r *run) kill(ctx context.Context, step conformance.Step) (err error) {
	if r.killed, err = r.home(ctx, step); err != nil {
		return err
	}
	if err := r.stage.system.KillEngine(r.killed); err != nil {
		return err
	}
	return r.stage.system.ReportTerminated(ctx, r.killed)
}

// takeOver kills the manager, and another takes its place.
func (r *run) takeOver(ctx context.Context) error {
	for _, replica := range r.stage.system.Replicas() {
		replica.Kill()
		<-replica.Done()
	}
	next, err := r.stage.system.StartReplica(ctx)
	if err != nil {
		return err
	}
	return r.stage.system.UntilReady(ctx, next)
}

// Close mends what has been broken.
func (r *run) Close() {
	if r.killed == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), runPatience)
	defer cancel()
	if err := r.stage.system.ReplacePod(ctx, r.killed); err != nil {
		r.stage.spoiled = true // the next scenario then says what is wrong
	}
}
