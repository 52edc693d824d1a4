package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// log is an execution log in memory.
type log struct {
	mu      sync.Mutex
	records []execlog.Record
}

// Append keeps a record.
func (l *log) Append(record any) error {
	r, ok := record.(execlog.Record)
	if !ok {
		return errors.New("not an engine's record")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// events are the lines of one kind.
func (l *log) events(e execlog.Event) (out []execlog.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Event == e {
			out = append(out, r)
		}
	}
	return out
}

// simulated starts a simulated engine. It lives 200 times as fast as a real one.
func simulated(t *testing.T, cfg enginesim.Config) (url string, executions *log) {
	t.Helper()
	executions = &log{}
	cfg.Log = executions
	if cfg.Speed == 0 {
		cfg.Speed = 200
	}
	cfg.StreamInterval = time.Millisecond
	engine, err := enginesim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := socket.Serve(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { engine.Close(); done.Wait() })
	return socket.URL(), executions
}

// scripted is an engine that does to each generation what a function says, on the bare connection.
// Aborts and loads it answers as an idle engine does.
type scripted struct {
	url       string
	generated atomic.Int64 // generations that began to arrive
	accepted  atomic.Int64 // connections
	mu        sync.Mutex
	bodies    []string      // guarded by mu
	heads     []http.Header // guarded by mu
}

// verdict says whether the connection is to be used on.
type verdict uint8

const (
	stayOpen verdict = iota
	hangUp
	reset
)

func script(t *testing.T, generation func(n int64, c net.Conn, r *bufio.Reader, body string) verdict) *scripted {
	t.Helper()
	return listen(t, func(s *scripted, c net.Conn) { s.talk(c, generation) })
}

// listen serves each connection by a function, until the test ends.
func listen(t *testing.T, talk func(s *scripted, c net.Conn)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{url: "http://" + l.Addr().String()}
	var handlers sync.WaitGroup
	var open sync.Map
	handlers.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			open.Store(c, nil)
			handlers.Go(func() {
				defer c.Close()
				defer open.Delete(c)
				talk(s, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		handlers.Wait()
	})
	return s
}

// scriptRaw is script for an engine that may not read a generation to its end. It is told of each
// when its first bytes are there.
func scriptRaw(t *testing.T, generation func(c net.Conn, r *bufio.Reader) verdict) *scripted {
	t.Helper()
	return listen(t, func(s *scripted, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			if head, err := r.Peek(len("POST /g")); err != nil {
				return
			} else if string(head) == "POST /g" {
				s.generated.Add(1)
				end(c, generation(c, r))
				return
			}
			if !s.chores(c, r) {
				return
			}
		}
	})
}

// chores answers one abort or look at the loads.
func (s *scripted) chores(c net.Conn, r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	return answerChore(c, req.URL.Path)
}

// answerChore answers aborts and looks at the loads as an idle engine does, and nothing else.
func answerChore(c net.Conn, path string) bool {
	switch path {
	case "/abort_request":
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	case "/v1/loads":
		now := time.Now()
		text := fmt.Sprintf(`{"loads":[{"timestamp":%d.%09d,"dp_rank":0}]}`, now.Unix(), now.Nanosecond())
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	default:
		return false
	}
	return true
}

// end does to a connection what the verdict says, before it is closed.
func end(c net.Conn, v verdict) {
	if v == reset {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

func (s *scripted) talk(c net.Conn, generation func(n int64, c net.Conn, r *bufio.Reader, body string) verdict) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		if answerChore(c, req.URL.Path) {
			continue
		}
		s.mu.Lock()
		s.bodies, s.heads = append(s.bodies, string(body)), append(s.heads, req.Header)
		s.mu.Unlock()
		if v := generation(s.generated.Add(1), c, r, string(body)); v != stayOpen {
			end(c, v)
			return
		}
	}
}

// last is the last generation's body and headers.
func (s *scripted) last() (string, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) == 0 {
		return "", nil
	}
	return s.bodies[len(s.bodies)-1], s.heads[len(s.heads)-1]
}

// Replies of a well-behaved engine.
const (
	plainJSON = `{"text":"ok","meta_info":{"id":"r","finish_reason":{"type":"length","length":3},"prompt_tokens":5,"completion_tokens":3,"weight_version":"v1"}}`
	eventText = "data: {\"text\":\"o\",\"meta_info\":{\"finish_reason\":null,\"completion_tokens\":1}}\n\n" +
		"data: {\"text\":\"ok\",\"meta_info\":{\"finish_reason\":{\"type\":\"stop\"},\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n" +
		"data: [DONE]\n\n"
)

func sized(status int, kind, text string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), kind, len(text), text)
}

func plain(text string) string { return sized(200, "application/json", text) }

// streamed is a stream of events, one chunk for each piece, without the end that chunks have.
func streamed(pieces ...string) string {
	out := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, p := range pieces {
		out += fmt.Sprintf("%x\r\n%s\r\n", len(p), p)
	}
	return out
}

const lastChunk = "0\r\n\r\n"

// replies always answers with the same bytes.
func replies(text string, v verdict) func(int64, net.Conn, *bufio.Reader, string) verdict {
	return func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
		_, _ = io.WriteString(c, text)
		return v
	}
}

// closedPort is the address of nobody.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
