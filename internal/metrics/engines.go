package metrics

import (
	"net/http"
	"strconv"
	"time"
)

// routes are the engine's calls that the manager makes. Any other is told as "other", so that an
// address with a path of its own does not become a label.
func routes() map[string]struct{} {
	out := map[string]struct{}{}
	for _, route := range []string{
		"/health", "/health_generate", "/model_info", "/get_model_info", "/server_info", "/get_server_info", "/v1/loads", "/get_load",
		"/abort_request", "/pause_generation", "/continue_generation", "/update_weights_from_disk", "/update_weight_version", "/get_weight_version", "/weight_version",
		"/flush_cache",
	} {
		out[route] = struct{}{}
	}
	return out
}

// Engines counts the calls that go through a transport to engines.
func (c *Collector) Engines(through http.RoundTripper) http.RoundTripper {
	return &counted{through: through, tally: c.tally, routes: routes()}
}

type counted struct {
	through http.RoundTripper
	tally   *tally
	routes  map[string]struct{}
}

// RoundTrip passes the call on. What is timed ends with the reply's headers.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	route := "other"
	if _, known := c.routes[r.URL.Path]; known {
		route = r.URL.Path
	}
	sent := time.Now()
	reply, err := c.through.RoundTrip(r)
	code := "error"
	if err == nil {
		code = strconv.Itoa(reply.StatusCode/100) + "xx"
	}
	c.tally.called(route, code, time.Since(sent))
	return reply, err
}
