package enginesim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// memoryTags are the parts of the engine's memory that can be given back, and their default when none is named.
var memoryTags = []string{"kv_cache", "weights", "cuda_graph"}

// memory is the parts that are released now.
type memory struct {
	released []string
}

func (s *Server) handleFlush(w http.ResponseWriter, r *http.Request) error {
	timeout := 0.0
	if q := r.URL.Query().Get("timeout"); q != "" {
		seconds, err := strconv.ParseFloat(q, 64)
		if err != nil || seconds < 0 {
			return invalidBody("query.timeout: Input should be a valid number")
		}
		timeout = seconds
	}
	if err := s.askScheduler(r.Context()); err != nil {
		return err
	}
	status, text := s.flushCache(r.Context(), time.Duration(timeout*float64(time.Second)))
	writeText(w, status, text)
	return nil
}

// flushCache empties the prefix caches once the engine is idle, waiting at most the timeout, in engine time.
func (s *Server) flushCache(ctx context.Context, timeout time.Duration) (int, string) {
	busy := false
	s.change(func(st *state) {
		if busy = st.flush == flushing; !busy {
			st.flush = flushing
		}
	})
	if busy {
		return http.StatusBadRequest, "Another flush_cache is already in progress."
	}
	defer s.change(func(st *state) { st.flush = notFlushing })
	done := false
	s.change(func(st *state) { done = st.flushAll(st.at) })
	if !done && timeout > 0 {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		t := s.cfg.Clock.NewTimer(s.time.real(timeout))
		defer t.Stop()
		s.goWork(func() {
			select {
			case <-t.C():
				cancel()
			case <-ctx.Done():
			}
		})
		done = s.await(ctx, func(st *state) bool { return st.flushAll(st.at) }) == nil
	}
	switch {
	case done:
		return http.StatusOK, "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)\n"
	case timeout > 0:
		return http.StatusBadRequest, "Timed out waiting for idle state."
	}
	return http.StatusBadRequest, "Flush cache failed."
}

// readTags reads which parts of memory a request is about.
func (s *Server) readTags(w http.ResponseWriter, r *http.Request) ([]string, error) {
	var body struct {
		Tags []string `json:"tags"`
	}
	if r.Method == http.MethodPost {
		if err := decodeRequest(w, r, &body); err != nil {
			return nil, err
		}
	}
	for _, tag := range body.Tags {
		if !slices.Contains(memoryTags, tag) {
			return nil, invalidBody(fmt.Sprintf("body.tags: %q is none of %v", tag, memoryTags))
		}
	}
	if s.cfg.MemorySaver != On {
		return nil, handlerError(http.StatusBadRequest, "release and resume of memory need --enable-memory-saver")
	}
	if len(body.Tags) == 0 {
		return memoryTags, nil
	}
	return body.Tags, s.askScheduler(r.Context())
}

// handleReleaseMemory gives memory back. The scheduler asserts that it is idle; if it is not, it dies.
func (s *Server) handleReleaseMemory(w http.ResponseWriter, r *http.Request) error {
	tags, err := s.readTags(w, r)
	if err != nil {
		return err
	}
	s.change(func(st *state) {
		if !st.idle() {
			s.dieLocked(exitCrash)
			return
		}
		st.memory.released = union(st.memory.released, tags)
		if slices.Contains(tags, "kv_cache") {
			s.flushOrDieLocked()
		}
		s.haltLocked(haltReleased)
	})
	writeJSON(w, http.StatusOK, nil)
	return nil
}

// handleResumeMemory takes memory back. While any is released nothing is generated.
func (s *Server) handleResumeMemory(w http.ResponseWriter, r *http.Request) error {
	tags, err := s.readTags(w, r)
	if err != nil {
		return err
	}
	s.change(func(st *state) {
		st.memory.released = slices.DeleteFunc(st.memory.released, func(t string) bool { return slices.Contains(tags, t) })
		if len(st.memory.released) == 0 {
			s.resumeLocked(haltReleased)
		}
	})
	writeJSON(w, http.StatusOK, nil)
	return nil
}

func union(a, b []string) []string {
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}
