package prober

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behaviour answers one request of one engine.
type behaviour func(r *http.Request) (*http.Response, error)

// network is a RoundTripper that gives each host a behaviour and notes when it was asked what.
type network struct {
	mu      sync.Mutex
	hosts   map[string]behaviour   // guarded by mu
	asked   map[string][]time.Time // guarded by mu; by host and path
	keys    map[string]string      // guarded by mu; the last credential, by host and path
	flying  map[string]int         // guarded by mu; calls under way, by host
	overlap bool                   // guarded by mu; two calls to one engine at once
}

func newNetwork() *network {
	return &network{
		hosts: map[string]behaviour{}, asked: map[string][]time.Time{},
		keys: map[string]string{}, flying: map[string]int{},
	}
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	host, at := r.URL.Host, r.URL.Host+r.URL.Path
	n.mu.Lock()
	answer := n.hosts[host]
	n.asked[at] = append(n.asked[at], time.Now())
	n.keys[at] = r.Header.Get("Authorization")
	n.flying[host]++
	n.overlap = n.overlap || n.flying[host] > 1
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.flying[host]--
		n.mu.Unlock()
	}()
	return answer(r)
}

func (n *network) set(host string, b behaviour) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = b
}

func (n *network) times(at string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]time.Time(nil), n.asked[at]...)
}

func respond(code int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// generating is an engine in order: it takes a second to prove its health, as the real one does.
func generating(version string) behaviour {
	return func(r *http.Request) (*http.Response, error) {
		switch r.URL.Path {
		case "/health":
			return after(r, time.Second, 200, "")
		case "/model_info":
			return respond(200, `{"weight_version":"`+version+`"}`)
		case "/v1/loads":
			return respond(200, `{"loads":[{"dp_rank":0,"timestamp":1,"max_running_requests":200},`+
				`{"dp_rank":1,"timestamp":1,"max_running_requests":56}]}`)
		}
		return respond(404, "")
	}
}

// after answers once d has passed, unless the caller goes away first.
func after(r *http.Request, d time.Duration, code int, body string) (*http.Response, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return respond(code, body)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// hung accepts and never answers.
func hung(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// refusing has nobody listening.
func refusing(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// paused parks the health check for the engine's twenty seconds, and still describes itself.
func paused(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/health" {
		return after(r, 20*time.Second, 503, "")
	}
	return respond(200, "{}")
}

// hungScheduler answers 503 after its twenty seconds, and nothing that needs the scheduler.
func hungScheduler(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/health" {
		return after(r, 20*time.Second, 503, "")
	}
	return hung(r)
}

// journal is a Sink that keeps everything and checks the order in which it comes.
type journal struct {
	t *testing.T

	mu   sync.Mutex
	all  map[Key][]Observation // guarded by mu
	last map[Key]uint64        // guarded by mu
}

func newJournal(t *testing.T) *journal {
	return &journal{t: t, all: map[Key][]Observation{}, last: map[Key]uint64{}}
}

func (j *journal) Observe(obs Observation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if obs.Seq <= j.last[obs.Key] {
		j.t.Errorf("%v: seq %d after %d", obs.Key, obs.Seq, j.last[obs.Key])
	}
	j.last[obs.Key] = obs.Seq
	j.all[obs.Key] = append(j.all[obs.Key], obs)
}

func (j *journal) of(k Key) []Observation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Observation(nil), j.all[k]...)
}

// first returns the first observation with a verdict.
func (j *journal) first(k Key, v Verdict) (Observation, bool) {
	for _, obs := range j.of(k) {
		if obs.Verdict == v {
			return obs, true
		}
	}
	return Observation{}, false
}

// aTarget is the usual target on a host of the network.
func aTarget(t *testing.T, host string, change ...func(*Target)) Target {
	t.Helper()
	base, err := sglang.ParseBaseURL("http://" + host + ":30000")
	if err != nil {
		t.Fatal(err)
	}
	target := Target{
		Incarnation: host, URL: base, Period: 5 * time.Second, Timeout: 25 * time.Second,
		FailureThreshold: 3, Budget: 60 * time.Second,
	}
	for _, c := range change {
		c(&target)
	}
	return target
}

// evenly is no jitter at all: probes are sent exactly one period apart, the first after half a
// second.
func evenly() float64 { return 0.5 }
