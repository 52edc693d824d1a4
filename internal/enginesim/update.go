package enginesim

import (
	"fmt"
	"net/http"
	"time"
)

// updateBody is what the weight updates have in common.
type updateBody struct {
	AbortAllRequests bool    `json:"abort_all_requests"`
	FlushCache       *bool   `json:"flush_cache"`
	WeightVersion    *string `json:"weight_version"`
}

// update is one weight update: what arrives and where it comes from.
type update struct {
	updateBody

	content string // names the new bytes
	path    string // of an update from disk; "" leaves the model's path and name
	refusal string // why the engine cannot do it, found before anything changes
}

// outcome is what a weight update replies.
type outcome struct {
	success bool
	status  int
	message string
}

func (s *Server) handleUpdateDisk(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		updateBody

		ModelPath string `json:"model_path"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if body.ModelPath == "" {
		return invalidBody("body.model_path: Field required")
	}
	out, err := s.update(update{updateBody: body.updateBody, content: body.ModelPath, path: body.ModelPath})
	if err != nil {
		return err
	}
	reply := map[string]any{"success": out.success, "message": out.message, "num_paused_requests": 0}
	if s.cfg.DPSize > 1 {
		all := make([]int, s.cfg.DPSize)
		reply["num_paused_requests"] = all
	}
	writeJSON(w, out.status, reply)
	return nil
}

func (s *Server) handleUpdateDistributed(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		updateBody

		Names     []string `json:"names"`
		DTypes    []string `json:"dtypes"`
		Shapes    [][]int  `json:"shapes"`
		GroupName string   `json:"group_name"`
	}{GroupName: defaultGroup}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if err := s.demandOneRank(); err != nil {
		return err
	}
	up := update{updateBody: body.updateBody, content: fmt.Sprintf("distributed:%v", body.Names)}
	switch _, joined := s.group(body.GroupName); {
	case !joined:
		up.refusal = fmt.Sprintf("Group %s not in the update groups. Please call `init_weights_update_group` first.", body.GroupName)
	case len(body.Names) != len(body.DTypes) || len(body.Names) != len(body.Shapes):
		up.refusal = "names, dtypes and shapes must be of equal length"
	}
	return s.replyUpdate(w, up)
}

func (s *Server) handleUpdateTensor(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		updateBody

		Tensors []string `json:"serialized_named_tensors"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if err := s.demandOneRank(); err != nil {
		return err
	}
	if len(body.Tensors) == 0 {
		return invalidBody("body.serialized_named_tensors: Field required")
	}
	return s.replyUpdate(w, update{updateBody: body.updateBody, content: "tensor:" + body.Tensors[0]})
}

func (s *Server) handleUpdateIPC(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		updateBody

		Handles map[string]string `json:"zmq_handles"`
	}
	if err := decodeRequest(w, r, &body); err != nil {
		return err
	}
	if len(body.Handles) == 0 {
		return invalidBody("body.zmq_handles: Field required")
	}
	return s.replyUpdate(w, update{updateBody: body.updateBody, content: fmt.Sprintf("ipc:%v", body.Handles)})
}

// demandOneRank is the engine's assertion that such an update finds one data-parallel rank.
func (s *Server) demandOneRank() error {
	if s.cfg.DPSize == 1 {
		return nil
	}
	return httpError(http.StatusInternalServerError, "Internal Server Error")
}

func (s *Server) replyUpdate(w http.ResponseWriter, u update) error {
	out, err := s.update(u)
	if err != nil {
		return err
	}
	writeJSON(w, out.status, map[string]any{"success": out.success, "message": out.message})
	return nil
}

// update changes the weights. It takes the gate's lock, unless generation is paused: then it goes ahead at
// once. The client's going does not end it.
func (s *Server) update(u update) (outcome, error) {
	if u.AbortAllRequests {
		s.change(func(*state) { s.abortAllLocked(abortedRunning) })
	}
	if err := s.takeTurn(s.updating); err != nil {
		return outcome{}, err
	}
	defer func() { <-s.updating }()
	locked, err := s.lockGate()
	if err != nil {
		return outcome{}, err
	}
	defer s.change(func(st *state) { st.gate.writing -= locked })
	if err := s.askScheduler(s.alive); err != nil {
		return outcome{}, err
	}
	s.change(func(*state) { s.haltLocked(haltUpdating) })
	pauseErr := s.time.pause(s.alive, s.cfg.UpdateTime)
	var out outcome
	s.change(func(st *state) {
		out = s.loadLocked(u)
		s.resumeLocked(haltUpdating)
		st.controls++
		st.counts.updateTime = max(0, s.cfg.UpdateTime)
	})
	if pauseErr != nil || s.alive.Err() != nil {
		return outcome{}, errGone
	}
	return out, nil
}

// lockGate waits for the gate's lock and returns 1, or 0 at once if generation is paused.
func (s *Server) lockGate() (locked int, err error) {
	paused := false
	s.change(func(st *state) {
		if paused = st.gate.paused != notPaused; !paused {
			st.gate.wanting++
		}
	})
	if paused {
		return 0, nil
	}
	return 1, s.await(s.alive, func(st *state) bool { return st.gate.lock() })
}

// loadLocked puts the new weights in place, or says why not. A flush of an engine that is not idle kills it.
func (s *Server) loadLocked(u update) outcome {
	st := s.st
	if u.refusal != "" {
		return outcome{status: http.StatusBadRequest, message: u.refusal}
	}
	if f := st.faults.take(FaultUpdateFails, ""); f != nil {
		return outcome{status: f.Status, message: f.Message}
	}
	st.weights.content = u.content
	if u.path != "" {
		st.weights.path, st.weights.served = u.path, u.path
	}
	message := "Succeeded to update model weights."
	if u.WeightVersion != nil {
		st.weights.version = *u.WeightVersion
		message += fmt.Sprintf(" Weight version updated to %s.", *u.WeightVersion)
	}
	if f := st.faults.take(FaultWrongVersion, ""); f != nil {
		st.weights.version = f.Version
	}
	if u.FlushCache == nil || *u.FlushCache {
		s.flushOrDieLocked()
	}
	return outcome{success: true, status: http.StatusOK, message: message}
}

// flushOrDieLocked is the flush that follows an update: the scheduler asserts that it works.
func (s *Server) flushOrDieLocked() {
	if !s.st.flushAll(s.st.at) {
		s.dieLocked(exitCrash)
	}
}

// flushAll empties the prefix caches, all or none, and reports whether it could.
func (st *state) flushAll(now time.Duration) bool {
	if !st.idle() {
		return false
	}
	for _, r := range st.ranks {
		if err := r.model.Flush(now); err != nil {
			return false
		}
	}
	return true
}
