package enginesim

import (
	"context"
	"net/http"
)

func (s *Server) handlePause(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		Mode pauseMode `json:"mode"`
	}{Mode: pauseAbort}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	switch body.Mode {
	case pauseAbort, pauseRetract, pauseInPlace:
	default:
		return invalidBody("body.mode: Input should be 'abort', 'retract' or 'in_place'")
	}
	if err := s.pauseGeneration(body.Mode); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"message": "Generation paused successfully.", "status": "ok"})
	return nil
}

func (s *Server) handleContinue(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		TorchEmptyCache bool `json:"torch_empty_cache"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if err := s.takeTurn(s.pausing); err != nil {
		return err
	}
	defer func() { <-s.pausing }()
	s.change(func(st *state) {
		st.gate.paused = notPaused
		s.resumeLocked(haltPaused)
		st.controls++
	})
	writeJSON(w, http.StatusOK, map[string]any{"message": "Generation continued successfully.", "status": "ok"})
	return nil
}

// takeTurn waits for a turn that one control request at a time may have. A client that goes does not end the
// control request, so only the engine's end does.
func (s *Server) takeTurn(turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-s.gone:
		return errGone
	}
}

// pauseGeneration pauses. Pausing an engine that is paused, in whatever mode, changes nothing.
func (s *Server) pauseGeneration(mode pauseMode) error {
	if err := s.takeTurn(s.pausing); err != nil {
		return err
	}
	defer func() { <-s.pausing }()
	again := false
	s.change(func(st *state) {
		st.controls++
		if again = st.gate.paused != notPaused; again {
			return
		}
		st.gate.paused = mode
		if mode == pauseAbort {
			return
		}
		s.haltLocked(haltPaused)
		if mode == pauseRetract {
			for _, r := range st.ranks {
				r.model.RetractAll(st.at)
			}
		}
	})
	if again || mode != pauseAbort {
		return nil
	}
	return s.abortUntilEmpty()
}

// abortUntilEmpty aborts everything, again and again, until no request is inside the gate.
func (s *Server) abortUntilEmpty() error {
	for {
		s.change(func(st *state) { s.abortAllLocked(abortedRunning) })
		ctx, cancel := context.WithCancel(s.alive)
		timer := s.cfg.Clock.NewTimer(s.time.real(s.cfg.AbortPoll))
		emptied := make(chan error, 1)
		go func() {
			emptied <- s.await(ctx, func(st *state) bool { return st.gate.readers == 0 })
		}()
		select {
		case err := <-emptied:
			cancel()
			timer.Stop()
			return err
		case <-timer.C():
			cancel()
			if err := <-emptied; err == nil {
				return nil
			}
		}
	}
}

func (s *Server) abortAllLocked(message string) {
	for _, q := range s.st.matching("") {
		s.abortLocked(q, message)
	}
}

func (s *Server) handleAbort(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		RID          string `json:"rid"`
		AbortAll     bool   `json:"abort_all"`
		AbortMessage string `json:"abort_message"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	message := firstOf(body.AbortMessage, abortedRunning)
	s.change(func(st *state) {
		switch {
		case body.AbortAll:
			s.abortAllLocked(message)
		case body.RID != "":
			for _, q := range st.matching(body.RID) {
				s.abortLocked(q, message)
			}
		}
	})
	w.WriteHeader(http.StatusOK)
	return nil
}
