package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/fakepool"
)

// desk keeps the runs.
type desk struct {
	table map[string]conformance.Scenario
	order []conformance.Scenario

	mu   sync.Mutex
	runs map[string]*fakepool.Pool // guarded by mu
	next int                       // guarded by mu
}

func newDesk() (*desk, error) {
	all, err := conformance.Load()
	if err != nil {
		return nil, err
	}
	d := &desk{table: map[string]conformance.Scenario{}, order: all, runs: map[string]*fakepool.Pool{}}
	for _, s := range all {
		d.table[s.Name] = s
	}
	return d, nil
}

func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.runs {
		p.Close()
	}
}

func (d *desk) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /scenarios", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, d.order) })
	mux.HandleFunc("POST /runs", d.begin)
	mux.HandleFunc("GET /runs/{run}/await", d.await)
	mux.HandleFunc("POST /runs/{run}/verdict", d.verdict)
	return mux
}

// begin starts a run of a scenario of the table, or of one that the caller brings along whole.
func (d *desk) begin(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Scenario string                `json:"scenario"`
		Whole    *conformance.Scenario `json:"whole"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	s, known := d.table[asked.Scenario]
	if asked.Whole != nil {
		s, known = *asked.Whole, true
	}
	if !known {
		complain(w, http.StatusNotFound, fmt.Errorf("there is no scenario %q", asked.Scenario))
		return
	}
	p, err := fakepool.Start(s)
	if err != nil {
		complain(w, http.StatusInternalServerError, err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	run := strconv.Itoa(d.next)
	d.runs[run] = p
	say(w, http.StatusCreated, map[string]string{
		"run": run, "baseURL": p.BaseURL(), "routerToken": fakepool.RouterToken, "engineKey": fakepool.EngineKey,
	})
}

func (d *desk) find(w http.ResponseWriter, r *http.Request) *fakepool.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.runs[r.PathValue("run")]
	if p == nil {
		complain(w, http.StatusNotFound, fmt.Errorf("there is no run %q", r.PathValue("run")))
	}
	return p
}

func (d *desk) await(w http.ResponseWriter, r *http.Request) {
	p := d.find(w, r)
	if p == nil {
		return
	}
	if err := p.Await(r.Context(), r.URL.Query().Get("word")); err != nil {
		complain(w, http.StatusGatewayTimeout, err)
		return
	}
	say(w, http.StatusOK, map[string]any{"trace": p.Trace()})
}

// verdict ends a run, judged or not.
func (d *desk) verdict(w http.ResponseWriter, r *http.Request) {
	p := d.find(w, r)
	if p == nil {
		return
	}
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.runs, r.PathValue("run"))
		p.Close()
	}()
	var handed struct {
		Reports []conformance.Report `json:"reports"`
	}
	if err := json.NewDecoder(r.Body).Decode(&handed); err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	violations, err := p.Judge(handed.Reports)
	if err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	say(w, http.StatusOK, map[string]any{"violations": violations, "trace": p.Trace()})
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone does not read its answer
}

func complain(w http.ResponseWriter, status int, err error) {
	say(w, status, map[string]string{"error": err.Error()})
}
