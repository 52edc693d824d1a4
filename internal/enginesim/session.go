package enginesim

import (
	"net/http"
)

// handleOpenSession gives a session of the engine's own an id. The simulator knows sessions by their id alone,
// so that it is only remembered as taken.
func (s *Server) handleOpenSession(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Capacity  int    `json:"capacity_of_str_len"`
		SessionID string `json:"session_id"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	id := firstOf(body.SessionID, s.cfg.NewID())
	taken := false
	s.change(func(st *state) {
		_, taken = st.opened[id]
		st.opened[id] = struct{}{}
	})
	if taken {
		return httpError(http.StatusBadRequest, "Failed to open the session. Check if a session with the same id is still open.")
	}
	writeJSON(w, http.StatusOK, id)
	return nil
}

func (s *Server) handleCloseSession(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		SessionID string `json:"session_id"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	s.change(func(st *state) { delete(st.opened, body.SessionID) })
	w.WriteHeader(http.StatusOK)
	return nil
}
