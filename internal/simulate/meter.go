package simulate

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// meter counts what a run is judged by.
type meter struct {
	replicas  []gauge
	moves     int
	latencies []float64 // seconds, of ended sessions
	idle      int       // replicas without a request
	queueing  int       // replicas with a request that waits
	wasted    time.Duration
}

// gauge is what a meter knows of one replica.
type gauge struct {
	output, prompt, cached int64
	idle, queues           bool
}

func newMeter(replicas int) meter {
	m := meter{replicas: make([]gauge, replicas), idle: replicas}
	for i := range m.replicas {
		m.replicas[i].idle = true
	}
	return m
}

// pass counts the time until the next event: that of every replica which idles while
// another one queues.
func (m *meter) pass(d time.Duration) {
	if m.queueing > 0 {
		m.wasted += time.Duration(m.idle) * d
	}
}

// look reads again whether a replica idles or queues; to be called when that may have
// changed.
func (m *meter) look(replica int, e *model.Engine) {
	g := &m.replicas[replica]
	m.idle -= indicator(g.idle)
	m.queueing -= indicator(g.queues)
	g.idle = e.Idle()
	g.queues = !g.idle && e.Load().Waiting > 0
	m.idle += indicator(g.idle)
	m.queueing += indicator(g.queues)
}

// indicator counts a truth as one.
func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sent counts a turn's prompt where it was sent.
func (m *meter) sent(replica int, turn workload.Turn) {
	m.replicas[replica].prompt += int64(turn.Prompt)
}

// done counts what a finished turn generated and found in the cache.
func (m *meter) done(replica int, e model.Event) {
	m.replicas[replica].output += int64(e.OutputTokens)
	m.replicas[replica].cached += int64(e.CachedTokens)
}

// ended counts a session's way from its opening to its last token.
func (m *meter) ended(latency time.Duration) {
	m.latencies = append(m.latencies, latency.Seconds())
}
