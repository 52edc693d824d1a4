package main

import (
	"encoding/json"
	"net/http"

	"github.com/berthmaster/berthmaster/clients/conformance/realpool"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// desk offers a house to tests in any language.
type desk struct{ house *realpool.House }

func (d desk) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, map[string]any{"baseURL": d.house.BaseURL(), "engines": d.house.Engines()})
	})
	mux.HandleFunc("POST /fleet", d.change)
	mux.HandleFunc("POST /takeover", func(w http.ResponseWriter, _ *http.Request) { acknowledge(w, d.house.TakeOver()) })
	mux.HandleFunc("GET /counted", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, d.house.Counted()) })
	mux.HandleFunc("POST /verdict", d.verdict)
	return mux
}

func (d desk) change(w http.ResponseWriter, r *http.Request) {
	var c realpool.Change
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		acknowledge(w, err)
		return
	}
	acknowledge(w, d.house.Apply(c))
}

func (d desk) verdict(w http.ResponseWriter, r *http.Request) {
	var handed struct {
		Client []execlog.ClientRecord `json:"client"`
	}
	if err := json.NewDecoder(r.Body).Decode(&handed); err != nil {
		acknowledge(w, err)
		return
	}
	say(w, http.StatusOK, d.house.Verdict(r.Context(), handed.Client))
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone does not read its answer
}

// acknowledge answers with nothing, or with what went wrong.
func acknowledge(w http.ResponseWriter, err error) {
	if err != nil {
		say(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	say(w, http.StatusOK, struct{}{})
}
