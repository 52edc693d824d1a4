package enginesim

import (
	"fmt"
	"hash/fnv"
	"net/http"
)

// defaultGroup is the name of the weight update group where a body names none.
const defaultGroup = "weight_update_group"

func (s *Server) handleUpdateVersion(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		NewVersion       *string `json:"new_version"`
		AbortAllRequests bool    `json:"abort_all_requests"`
	}{AbortAllRequests: true}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if body.NewVersion == nil {
		return invalidBody("body.new_version: Field required")
	}
	s.change(func(st *state) {
		if body.AbortAllRequests {
			s.abortAllLocked(abortedRunning)
		}
		st.weights.version = *body.NewVersion
	})
	writeJSON(w, http.StatusOK, map[string]any{
		"success": true, "message": "Weight version updated to " + *body.NewVersion, "new_version": *body.NewVersion,
	})
	return nil
}

func (s *Server) group(name string) (worldSize int, joined bool) {
	s.read(func(st *state) { worldSize, joined = st.groups[name] })
	return worldSize, joined
}

func (s *Server) handleInitGroup(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		MasterAddress string `json:"master_address"`
		MasterPort    int    `json:"master_port"`
		RankOffset    int    `json:"rank_offset"`
		WorldSize     int    `json:"world_size"`
		GroupName     string `json:"group_name"`
	}{GroupName: defaultGroup}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if body.MasterAddress == "" || body.MasterPort == 0 || body.WorldSize == 0 {
		return invalidBody("body: master_address, master_port and world_size are required")
	}
	if err := s.demandOneRank(); err != nil {
		return err
	}
	if err := s.askScheduler(r.Context()); err != nil {
		return err
	}
	if body.RankOffset >= body.WorldSize {
		return s.replyGroup(w, false, fmt.Sprintf("Failed to initialize custom process group: rank %d of %d.", body.RankOffset, body.WorldSize))
	}
	s.change(func(st *state) { st.groups[body.GroupName] = body.WorldSize })
	return s.replyGroup(w, true, "Succeeded to initialize custom process group.")
}

func (s *Server) handleDestroyGroup(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		GroupName string `json:"group_name"`
	}{GroupName: defaultGroup}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if err := s.askScheduler(r.Context()); err != nil {
		return err
	}
	if _, joined := s.group(body.GroupName); !joined {
		return s.replyGroup(w, false, "The group to be destroyed does not exist.")
	}
	s.change(func(st *state) { delete(st.groups, body.GroupName) })
	return s.replyGroup(w, true, "Succeeded to destroy custom process group.")
}

func (s *Server) replyGroup(w http.ResponseWriter, success bool, message string) error {
	status := http.StatusOK
	if !success {
		status = http.StatusBadRequest
	}
	writeJSON(w, status, map[string]any{"success": success, "message": message})
	return nil
}

// handleWeightsChecker tells a checksum of what was loaded, which follows the bytes and not the version.
func (s *Server) handleWeightsChecker(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		Action string `json:"action"`
	}{Action: "checksum"}
	if r.Method == http.MethodPost {
		if err := decodeRequest(w, r, &body); err != nil {
			return err
		}
	}
	if body.Action != "checksum" {
		return s.replyGroup(w, false, fmt.Sprintf("Unsupported action %q.", body.Action))
	}
	if err := s.askScheduler(r.Context()); err != nil {
		return err
	}
	h := fnv.New64a()
	s.read(func(st *state) { _, _ = h.Write([]byte(st.weights.content)) })
	sum := fmt.Sprintf("%016x", h.Sum64())
	ranks := make([]map[string]any, s.cfg.DPSize)
	for i := range ranks {
		ranks[i] = map[string]any{"dp_rank": i, "checksum": sum}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"success": true, "message": "Success.", "ranks": ranks, "per_engine_checksum": sum,
	})
	return nil
}
