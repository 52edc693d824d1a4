package samples

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// server answers /v1/loads with one reply after the other, and the last of them for ever.
type server struct {
	mu      sync.Mutex
	replies []string // guarded by mu; empty: there is no such route
	older   string   // what /get_load says
	looks   int      // guarded by mu
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.URL.Path == "/get_load" && s.older != "":
		_, _ = io.WriteString(w, s.older)
	case r.URL.Path == "/v1/loads" && len(s.replies) > 0:
		_, _ = io.WriteString(w, s.replies[min(s.looks, len(s.replies)-1)])
	default:
		http.NotFound(w, r)
		return
	}
	s.looks++
}

const idle = `{"loads":[{"dp_rank":0,"num_running_reqs":0,"num_waiting_reqs":0,"queues":{"waiting":0,"grammar":0,"paused":0,"retracted":0,"prealloc_ready":0}}]}`

func loads(rank string) string {
	return `{"loads":[{"dp_rank":0,"num_running_reqs":0,"num_waiting_reqs":0},{"dp_rank":1,` + rank + `}]}`
}

// await runs the hook, to whose environment is added, until it ends.
func await(t *testing.T, s http.Handler, environment ...string) error {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	at := httptest.NewServer(s)
	defer at.Close()
	where, err := url.Parse(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	hook := exec.CommandContext(ctx, "python3", "../../config/samples/gpu/await-idle.py")
	hook.Env = append(os.Environ(), append([]string{"ENGINE_PORT=" + where.Port(), "QUIET_SECONDS=0"}, environment...)...)
	out, err := hook.CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
	}
	return err
}

func TestAnEngineThatMayRunSomethingIsWaitedFor(t *testing.T) {
	for name, first := range map[string]string{
		"a request runs":                    loads(`"num_running_reqs":1,"num_waiting_reqs":0`),
		"one waits":                         loads(`"num_running_reqs":0,"num_waiting_reqs":1`),
		"one waits for its grammar":         loads(`"num_running_reqs":0,"num_waiting_reqs":0,"queues":{"grammar":1}`),
		"one is about to be given memory":   loads(`"num_running_reqs":0,"num_waiting_reqs":0,"queues":{"prealloc_ready":1}`),
		"one is paused":                     loads(`"num_running_reqs":0,"num_waiting_reqs":0,"queues":{"paused":1}`),
		"one is retracted":                  loads(`"num_running_reqs":0,"num_waiting_reqs":0,"queues":{"retracted":1}`),
		"no rank is told of":                `{"loads":[]}`,
		"a number is missing":               `{"loads":[{"dp_rank":0}]}`,
		"a number is null":                  `{"loads":[{"dp_rank":0,"num_running_reqs":null,"num_waiting_reqs":0}]}`,
		"the answer is no JSON":             `<html>`,
		"the answer is of another shape":    `[]`,
		"the queues are of another shape":   loads(`"num_running_reqs":0,"num_waiting_reqs":0,"queues":[1]`),
		"nothing of what is expected is in": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{replies: []string{first, idle}}
			if err := await(t, s); err != nil {
				t.Error(err)
			}
			if s.looks < 2 {
				t.Errorf("it was content with the first of %d looks", s.looks)
			}
		})
	}
}

func TestAnIdleEngineIsNotWaitedFor(t *testing.T) {
	for name, s := range map[string]*server{
		"of now":                         {replies: []string{idle}},
		"with queues that it leaves out": {replies: []string{loads(`"num_running_reqs":0,"num_waiting_reqs":0,"queues":null`)}},
		"of before there was /v1/loads":  {older: `[{"dp_rank":0,"num_reqs":0,"num_waiting_reqs":0}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Whatever is there for the container's calls abroad does not matter.
			if err := await(t, s, "http_proxy=http://192.0.2.1:9", "HTTP_PROXY=http://192.0.2.1:9", "no_proxy="); err != nil {
				t.Error(err)
			}
			if s.looks != 1 {
				t.Errorf("it took %d looks", s.looks)
			}
		})
	}
}

func TestAnEngineThatHasEndedIsNotWaitedFor(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	where, err := url.Parse(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	if err := await(t, http.NotFoundHandler(), "ENGINE_PORT="+where.Port()); err != nil {
		t.Error(err)
	}
}
