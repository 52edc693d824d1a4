package enginesim

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble is an engine whose time is virtual: it passes only while everybody waits.
type bubble struct {
	t   *testing.T
	s   *Server
	log *memoryLog
}

// memoryLog keeps the execution log in memory.
type memoryLog struct {
	mu      sync.Mutex
	records []execlog.Record
	fail    error
}

func (l *memoryLog) Append(record any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.records = append(l.records, record.(execlog.Record))
	return nil
}

func (l *memoryLog) all() []execlog.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]execlog.Record(nil), l.records...)
}

func inBubble(t *testing.T, cfg Config, f func(*bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, log: &memoryLog{}}
		cfg.Log = b.log
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b.s = s
		defer s.Close()
		f(b)
	})
}

// call is a request that a handler is answering.
type call struct {
	rec    *httptest.ResponseRecorder
	done   chan struct{}
	cancel context.CancelFunc
	cut    bool // the handler ended the connection
	began  time.Time
	took   time.Duration
}

// start sends a request and does not wait.
func (b *bubble) start(method, path, body string, headers ...string) *call {
	ctx, cancel := context.WithCancel(b.t.Context())
	c := &call{rec: httptest.NewRecorder(), done: make(chan struct{}), cancel: cancel, began: time.Now()}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	go func() {
		defer close(c.done)
		defer cancel()
		defer func() {
			c.cut = recover() != nil
			c.took = time.Since(c.began)
		}()
		b.s.ServeHTTP(c.rec, r)
	}()
	return c
}

// do sends a request and waits for the end of it.
func (b *bubble) do(method, path, body string, headers ...string) *call {
	c := b.start(method, path, body, headers...)
	<-c.done
	return c
}

func (b *bubble) post(path, body string, headers ...string) *call {
	return b.do(http.MethodPost, path, body, headers...)
}

func (b *bubble) fault(f string) {
	b.t.Helper()
	if c := b.post("/sim/faults", f); c.rec.Code != http.StatusOK {
		b.t.Fatalf("fault %s: %s", f, c.rec.Body)
	}
}

// after lets virtual time pass.
func after(d time.Duration) { <-time.After(d) }

func (c *call) over() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *call) json(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(c.rec.Body.Bytes(), &out); err != nil {
		t.Fatalf("%v: %s", err, c.rec.Body)
	}
	return out
}

// hundred is a request of 80 prompt tokens and 101 output tokens: 10 ms of prefill and 100 steps of 6.35 ms.
const (
	hundredTime = 645 * time.Millisecond
)

func hundred(extra string) string {
	ids := strings.TrimSuffix(strings.Repeat("7,", 80), ",")
	return `{"input_ids":[` + ids + `],"sampling_params":{"max_new_tokens":101,"ignore_eos":true}` + extra + `}`
}

// about allows for the rounding of timers, of which a request meets a few.
func about(got, want time.Duration) bool {
	return got >= want && got < want+time.Millisecond
}
