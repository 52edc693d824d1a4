package enginesim

import (
	"encoding/json"
	"net/http"
)

// Terminate is what SIGTERM does: health answers 503, requests are served on and even accepted, and once none
// is inside, which is looked at every ExitPoll, the engine ends with status 0. An engine that thinks itself
// unhealthy ends at once. It returns at once; Done tells the end.
func (s *Server) Terminate() {
	again := false
	s.change(func(st *state) {
		again = st.closing == terminating
		st.closing = terminating
	})
	if !again {
		s.goWork(s.drain)
	}
}

func (s *Server) drain() {
	for {
		over := false
		s.read(func(st *state) { over = st.health == unhealthy || st.gate.readers == 0 })
		if over {
			s.die(exitOK)
			return
		}
		if s.time.pause(s.alive, s.cfg.ExitPoll) != nil {
			return
		}
	}
}

// handleSimFaults is the admin endpoint of the faults: GET lists them, POST adds one or a list, DELETE clears
// them all.
func (s *Server) handleSimFaults(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodPost:
		return s.addFaults(w, r)
	case http.MethodDelete:
		s.change(func(*state) { s.disarmLocked() })
	}
	s.writeFaults(w)
	return nil
}

func (s *Server) writeFaults(w http.ResponseWriter) {
	list := []Fault{}
	s.read(func(st *state) {
		for _, f := range st.faults.armed {
			list = append(list, *f)
		}
	})
	writeJSON(w, http.StatusOK, map[string]any{"faults": list})
}

func (s *Server) addFaults(w http.ResponseWriter, r *http.Request) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	list, err := readFaults(raw)
	if err != nil {
		return err
	}
	last := Fault{}
	s.change(func(*state) {
		for _, f := range list {
			if f.Kind == FaultExit && f.After == 0 {
				last = f // its reply goes out first
				continue
			}
			s.armLocked(f)
		}
	})
	s.writeFaults(w)
	if last.Kind == FaultExit {
		_ = http.NewResponseController(w).Flush() // the process is about to end either way
		s.change(func(*state) { s.armLocked(last) })
	}
	return nil
}

// readFaults reads one fault or a list of them.
func readFaults(raw []byte) ([]Fault, error) {
	var list []Fault
	if err := json.Unmarshal(raw, &list); err != nil {
		var one Fault
		if err := decode(raw, &one); err != nil {
			return nil, err
		}
		list = []Fault{one}
	}
	for _, f := range list {
		if err := f.Validate(); err != nil {
			return nil, invalidBody("fault: " + err.Error())
		}
	}
	return list, nil
}
