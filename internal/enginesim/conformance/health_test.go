package conformance

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

// quickHealth makes the failure of a health request take an engine second or two instead of twenty.
func quickHealth(c *enginesim.Config) {
	c.HealthPoll, c.HealthTimeout = 200*time.Millisecond, 2*time.Second
}

// patientHealth gives a row a minute of real time before the failure of a health request could interfere.
func patientHealth(c *enginesim.Config) { c.HealthTimeout = speed * time.Minute }

func healthRows() []row {
	return []row{
		{"1.2", "a healthy engine answers 200 with an empty body after about a second", nothing, nil, func(t *testing.T, e *engine) {
			for _, path := range []string{"/health", "/health_generate"} {
				r := e.get(t, path)
				wantStatus(t, r, http.StatusOK)
				if r.body != "" || r.latency < e.second*8/10 {
					t.Errorf("%s: body %q after %v, a second is %v here", path, r.body, r.latency, e.second)
				}
			}
		}},
		{"1.2", "a busy engine answers 200", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			wantStatus(t, e.get(t, "/health"), http.StatusOK)
			e.abort(t, p.rid)
		}},
		{"1.2", "while paused the probe hangs and ends in 503, in every mode", admin, quickHealth, func(t *testing.T, e *engine) {
			for _, mode := range []string{"abort", "retract", "in_place"} {
				e.pause(t, mode)
				// The first probe may still see the last output of before.
				eventually(t, "probes fail", func() bool { return e.get(t, "/health").status == http.StatusServiceUnavailable })
				e.ok(t, "/continue_generation", "{}")
				wantStatus(t, e.get(t, "/health"), http.StatusOK)
			}
		}},
		{"1.2", "while paused an answer to a control request makes the probe succeed", admin, patientHealth, func(t *testing.T, e *engine) {
			e.pause(t, "in_place")
			defer e.ok(t, "/continue_generation", "{}")
			probe := make(chan reply, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() { probe <- e.call(ctx, http.MethodGet, "/health", "") }()
			var r reply
			eventually(t, "the probe ends", func() bool {
				e.get(t, "/server_info")
				select {
				case r = <-probe:
					return true
				default:
					return false
				}
			})
			wantStatus(t, r, http.StatusOK)
		}},
		{"1.2", "during an update it is 200 while requests drain and 503 while a long load blocks", simulator,
			func(c *enginesim.Config) { quickHealth(c); c.UpdateTime = time.Hour }, checkHealthDuringUpdate},
		{"1.2", "a hung scheduler is 503 when the probe gives up", simulator, quickHealth, func(t *testing.T, e *engine) {
			e.fault(t, `{"kind":"scheduler-dead"}`)
			wantStatus(t, e.get(t, "/health"), http.StatusServiceUnavailable)
		}},
		{"1.2", "health can be wrong in both directions", simulator, nil, func(t *testing.T, e *engine) {
			e.fault(t, `[{"kind":"scheduler-dead"},{"kind":"health","status":200}]`)
			wantStatus(t, e.get(t, "/health"), http.StatusOK)
			e.clearFaults(t)
			e.fault(t, `{"kind":"health","status":503}`)
			wantStatus(t, e.get(t, "/health"), http.StatusServiceUnavailable)
			e.ok(t, "/generate", `{"text":"x"}`)
		}},
		{"1.2", "with health generation off /health answers at once and /health_generate asks", simulator,
			func(c *enginesim.Config) { quickHealth(c); c.HealthGeneration = enginesim.Off }, func(t *testing.T, e *engine) {
				e.pause(t, "in_place")
				wantStatus(t, e.get(t, "/health"), http.StatusOK)
				wantStatus(t, e.get(t, "/health_generate"), http.StatusServiceUnavailable)
			}},
	}
}

// pause pauses the engine. One that other rows need goes on at the end, however the row ends.
func (e *engine) pause(t *testing.T, mode string) {
	t.Helper()
	if e.simulated == nil {
		t.Cleanup(func() { e.call(context.Background(), http.MethodPost, "/continue_generation", "{}") })
	}
	e.ok(t, "/pause_generation", body(map[string]any{"mode": mode}))
}

func (e *engine) fault(t *testing.T, fault string) {
	t.Helper()
	e.ok(t, "/sim/faults", fault)
}

func (e *engine) clearFaults(t *testing.T) {
	t.Helper()
	wantStatus(t, e.call(t.Context(), http.MethodDelete, "/sim/faults", ""), http.StatusOK)
}

func checkHealthDuringUpdate(t *testing.T, e *engine) {
	p := e.hold(t)
	e.background(t, "/update_weights_from_disk", body(map[string]any{"model_path": e.model}))
	eventually(t, "the update waits", func() bool { return e.get(t, "/sim/state").object(t)["updates_waiting"] == 1.0 })
	wantStatus(t, e.get(t, "/health"), http.StatusOK)
	e.abort(t, p.rid)
	eventually(t, "the update holds the engine", func() bool { return e.get(t, "/sim/state").object(t)["updates_running"] == 1.0 })
	// The first probe may still see the abort's output.
	eventually(t, "the load makes probes fail", func() bool { return e.get(t, "/health").status == http.StatusServiceUnavailable })
}

func processRows() []row {
	return []row{
		{"1.2", "starting is 503 while /model_info answers 200", simulator,
			func(c *enginesim.Config) { c.Startup = speed * time.Hour }, func(t *testing.T, e *engine) {
				wantStatus(t, e.get(t, "/health"), http.StatusServiceUnavailable)
				wantStatus(t, e.get(t, "/model_info"), http.StatusOK)
			}},
		{"1.2", "after its warm-up it is up", simulator,
			func(c *enginesim.Config) { c.Startup = time.Second }, func(t *testing.T, e *engine) {
				eventually(t, "it is up", func() bool { return e.get(t, "/health").status == http.StatusOK })
			}},
		{"1.2", "without warm-up it is up at once", simulator, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.get(t, "/health"), http.StatusOK)
		}},
		{"1.2", "before the bind and after the end connections are refused", simulator, nil, func(t *testing.T, e *engine) {
			e.simulated.Close()
			eventually(t, "the port is closed", func() bool {
				conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			})
		}},
		{"1.2", "after SIGTERM health is 503, requests are accepted, and it exits once empty", simulator, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.simulated.Terminate()
			wantStatus(t, e.get(t, "/health"), http.StatusServiceUnavailable)
			e.ok(t, "/generate", `{"text":"late","sampling_params":{"max_new_tokens":2}}`)
			e.abort(t, p.rid)
			wantStatus(t, p.wait(t), http.StatusOK)
			e.wantExit(t, 0)
		}},
		{"1.2", "after SIGTERM an unhealthy engine exits without draining", simulator, quickHealth, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.pause(t, "in_place")
			wantStatus(t, e.get(t, "/health"), http.StatusServiceUnavailable)
			e.simulated.Terminate()
			e.wantExit(t, 0)
			if r := p.wait(t); !cut(r) {
				t.Errorf("the request was answered: %d", r.status)
			}
		}},
	}
}

func (e *engine) wantExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-e.simulated.Done():
	case <-time.After(patience):
		t.Fatal("the engine did not end")
	}
	if got := e.simulated.ExitCode(); got != code {
		t.Errorf("exit status %d, want %d", got, code)
	}
}
