package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// Run is one run of a scenario, played by some pool.
type Run interface {
	// Offer says how the client reaches the pool.
	Offer() conformance.Offer
	// Await waits until the run has come as far as a word says.
	Await(ctx context.Context, word string) error
	// Act does a step that is not the client's.
	Act(ctx context.Context, step conformance.Step) error
	// Judge takes the client's report of each step, and says what was wrong; nothing if the client passed.
	Judge(reports []conformance.Report) ([]string, error)
	// Close ends the run.
	Close()
}

// Begin begins a run of a scenario.
type Begin func(ctx context.Context, s conformance.Scenario) (Run, error)

// Desk keeps the runs of one table. Whoever makes it closes it.
type Desk struct {
	table []conformance.Scenario
	begin Begin

	mu   sync.Mutex
	runs map[string]Run // guarded by mu
	next int            // guarded by mu
}

// New returns a desk for that table.
func New(table []conformance.Scenario, begin Begin) *Desk {
	return &Desk{table: table, begin: begin, runs: map[string]Run{}}
}

// Close ends the runs that nobody asked a verdict of.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.runs {
		r.Close()
	}
}

// Handler serves the desk.
func (d *Desk) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /scenarios", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, d.table) })
	mux.HandleFunc("POST /runs", d.start)
	mux.HandleFunc("GET /runs/{run}/await", d.await)
	mux.HandleFunc("POST /runs/{run}/act", d.act)
	mux.HandleFunc("POST /runs/{run}/verdict", d.verdict)
	return mux
}

// start begins a run of a scenario of the table, or of one that the caller brings along whole.
func (d *Desk) start(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Scenario string                `json:"scenario"`
		Whole    *conformance.Scenario `json:"whole"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	if asked.Whole == nil {
		for _, s := range d.table {
			if s.Name == asked.Scenario {
				asked.Whole = &s
			}
		}
	}
	if asked.Whole == nil {
		complain(w, http.StatusNotFound, fmt.Errorf("there is no scenario %q", asked.Scenario))
		return
	}
	run, err := d.begin(r.Context(), *asked.Whole)
	if err != nil {
		complain(w, http.StatusInternalServerError, err)
		return
	}
	offer := run.Offer()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	offer.Run = strconv.Itoa(d.next)
	d.runs[offer.Run] = run
	say(w, http.StatusCreated, offer)
}

// find is the run that a call is about; nil if there is none, which has been said then.
func (d *Desk) find(w http.ResponseWriter, r *http.Request) Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	run := d.runs[r.PathValue("run")]
	if run == nil {
		complain(w, http.StatusNotFound, fmt.Errorf("there is no run %q", r.PathValue("run")))
	}
	return run
}

func (d *Desk) await(w http.ResponseWriter, r *http.Request) {
	run := d.find(w, r)
	if run == nil {
		return
	}
	if err := run.Await(r.Context(), r.URL.Query().Get("word")); err != nil {
		complain(w, http.StatusGatewayTimeout, err)
		return
	}
	say(w, http.StatusOK, struct{}{})
}

func (d *Desk) act(w http.ResponseWriter, r *http.Request) {
	run := d.find(w, r)
	if run == nil {
		return
	}
	var step conformance.Step
	err := json.NewDecoder(r.Body).Decode(&step)
	if err == nil {
		err = run.Act(r.Context(), step)
	}
	if err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	say(w, http.StatusOK, struct{}{})
}

// verdict ends a run, judged or not.
func (d *Desk) verdict(w http.ResponseWriter, r *http.Request) {
	run := d.find(w, r)
	if run == nil {
		return
	}
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.runs, r.PathValue("run"))
		run.Close()
	}()
	var handed struct {
		Reports []conformance.Report `json:"reports"`
	}
	if err := json.NewDecoder(r.Body).Decode(&handed); err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	violations, err := run.Judge(handed.Reports)
	if err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	say(w, http.StatusOK, map[string]any{"violations": violations})
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone does not read its answer
}

func complain(w http.ResponseWriter, status int, err error) {
	say(w, status, map[string]string{"error": err.Error()})
}
