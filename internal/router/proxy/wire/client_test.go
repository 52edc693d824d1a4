package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a server of which every connection is handled by one function.
type script struct {
	net.Listener
	url string

	mu    sync.Mutex
	conns int // guarded by mu
}

func serve(t *testing.T, handle func(n int, c net.Conn, r *bufio.Reader)) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{Listener: l, url: "http://" + l.Addr().String()}
	var handlers sync.WaitGroup
	handlers.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			n := s.conns
			s.mu.Unlock()
			handlers.Go(func() {
				defer c.Close()
				handle(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { l.Close(); handlers.Wait() })
	return s
}

func (s *script) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

func client(t *testing.T, c wire.Config) *wire.Client {
	t.Helper()
	out := wire.New(c)
	t.Cleanup(out.Close)
	return out
}

func post(body string) *wire.Request {
	return &wire.Request{Method: "POST", Target: "/generate", Header: http.Header{}, Body: strings.NewReader(body), Length: int64(len(body))}
}

func minute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// read takes one request off a connection.
func read(r *bufio.Reader) (*http.Request, []byte, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(req.Body)
	return req, body, err
}

func whole(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWrittenIsCertainOnlyWhenNothingWasTaken(t *testing.T) {
	refused := serve(t, func(int, net.Conn, *bufio.Reader) {})
	refused.Close()
	reset := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = r.ReadByte()
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	mute := func(context.Context, string, string) (net.Conn, error) { return deaf{}, nil }
	cases := map[string]struct {
		url  string
		cfg  wire.Config
		head http.Header
		want wire.Written
	}{
		"a refused connection":                {url: refused.url, want: wire.NoByte},
		"a reset after the first byte":        {url: reset.url, want: wire.PerhapsSome},
		"a socket that takes nothing":         {url: "http://b", cfg: wire.Config{Dial: mute}, want: wire.NoByte},
		"a header that is no header":          {url: reset.url, head: http.Header{"A": {"b\r\nC: d"}}, want: wire.NoByte},
		"an address that is none":             {url: "::", want: wire.NoByte},
		"a name that TLS was to be spoken to": {url: strings.Replace(reset.url, "http", "https", 1), want: wire.NoByte},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := post("{}")
			r.Header = c.head
			_, err := client(t, c.cfg).Do(minute(t), c.url, r)
			if err == nil || wire.WrittenOf(err) != c.want {
				t.Errorf("got %v, written %v", err, wire.WrittenOf(err))
			}
		})
	}
}

// deaf is a connection that takes nothing.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error)   { return 0, errors.New("broken pipe") }
func (deaf) Close() error                { return nil }
func (deaf) SetDeadline(time.Time) error { return nil }

func TestAConnectionServesAgainOnceItsReplyWasReadWhole(t *testing.T) {
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			if _, _, err := read(r); err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
		}
	})
	c := client(t, wire.Config{})
	for range 3 {
		resp, err := c.Do(minute(t), s.url, post("{}"))
		if text := whole(t, resp, err); text != "ok" {
			t.Fatalf("got %q", text)
		}
	}
	if n := s.accepted(); n != 1 {
		t.Errorf("%d connections for three exchanges", n)
	}
	resp, err := c.Do(minute(t), s.url, post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() // not read
	resp, err = c.Do(minute(t), s.url, post("{}"))
	if whole(t, resp, err) != "ok" || s.accepted() != 2 {
		t.Errorf("%d connections: one with an unread reply was used again", s.accepted())
	}
}

func TestARestingConnectionThatTheEngineClosedIsNotWrittenTo(t *testing.T) {
	closed := make(chan struct{}, 1)
	s := serve(t, func(n int, c net.Conn, r *bufio.Reader) {
		_, _, _ = read(r)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
		c.Close()
		closed <- struct{}{}
	})
	c := client(t, wire.Config{})
	for n := 1; n <= 3; n++ {
		resp, err := c.Do(minute(t), s.url, post("{}"))
		if text := whole(t, resp, err); text != fmt.Sprint(n) {
			t.Fatalf("exchange %d: got %q", n, text)
		}
		<-closed
	}
}

func TestARestingConnectionIsClosedInTime(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _, _ = read(r)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_, _ = r.ReadByte()
		close(gone)
	})
	c := client(t, wire.Config{IdleTime: time.Millisecond})
	resp, err := c.Do(minute(t), s.url, post("{}"))
	whole(t, resp, err)
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("it rests for ever")
	}
}

func TestTheEndOfTheContextCutsTheConnection(t *testing.T) {
	for name, head := range map[string]string{
		"before the reply": "",
		"inside the reply": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			began, gone := make(chan struct{}), make(chan struct{})
			s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
				_, _, _ = read(r)
				fmt.Fprint(c, head)
				close(began)
				_, _ = r.ReadByte()
				close(gone)
			})
			ctx, cancel := context.WithCancel(minute(t))
			go func() { <-began; cancel() }()
			resp, err := client(t, wire.Config{}).Do(ctx, s.url, post("{}"))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			} else if wire.WrittenOf(err) != wire.PerhapsSome {
				t.Error("a written request is taken for unwritten")
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			<-gone
		})
	}
}

func TestACutReplyIsNotAWholeOne(t *testing.T) {
	for name, reply := range map[string]string{
		"short of its length":      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"without its last chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
		"inside its last chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nshort",
		"inside its headers":       "HTTP/1.1 200 OK\r\nContent-Le",
		"headers that are endless": "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 100<<10),
		"another protocol":         "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"no HTTP":                  "SSH-2.0-OpenSSH\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
				_, _, _ = read(r)
				fmt.Fprint(c, reply)
			})
			resp, err := client(t, wire.Config{}).Do(minute(t), s.url, post("{}"))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil || wire.WrittenOf(err) != wire.PerhapsSome {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestALargeBodyIsStreamed(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	var got []byte
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			_, body, err := read(r)
			if err != nil {
				return
			}
			got = body
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	c := client(t, wire.Config{})
	for range 2 {
		resp, err := c.Do(minute(t), s.url, &wire.Request{Method: "POST", Target: "/generate", Body: bytes.NewReader(want), Length: int64(len(want))})
		if whole(t, resp, err); !bytes.Equal(got, want) {
			t.Fatalf("the engine got %d bytes of %d", len(got), len(want))
		}
	}
	if s.accepted() != 1 {
		t.Error("a whole exchange was not followed by another on its connection")
	}
}

func TestAReplyBeforeTheWholeRequestIsHeard(t *testing.T) {
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		fmt.Fprint(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		_, _ = io.CopyN(io.Discard, r, 1<<20)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r)
	})
	c := client(t, wire.Config{})
	resp, err := c.Do(minute(t), s.url, &wire.Request{Method: "POST", Target: "/", Body: endless{}, Length: 1 << 40})
	if whole(t, resp, err) != "big" || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %v", resp.Status)
	}
}

// endless is a body without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestABodyShortOfItsLengthCutsTheConnection(t *testing.T) {
	for name, length := range map[string]int64{"small": 10, "large": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(_ int, _ net.Conn, r *bufio.Reader) { _, _, _ = read(r) })
			r := post("short")
			r.Length = length
			if _, err := client(t, wire.Config{}).Do(minute(t), s.url, r); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestHeadersArePassedButNoneThatInvitesARepetition(t *testing.T) {
	var got *http.Request
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		got, _, _ = read(r)
		fmt.Fprint(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	r := post("{}")
	r.Header = http.Header{"X-A": {"1", "2"}, "Idempotency-Key": {"k"}, "Content-Length": {"99"}, "Connection": {"close"}, "Transfer-Encoding": {"chunked"}, "Host": {"evil"}}
	resp, err := client(t, wire.Config{}).Do(minute(t), s.url, r)
	whole(t, resp, err)
	if len(got.Header["X-A"]) != 2 || got.Header.Get("Idempotency-Key") != "" || got.ContentLength != 2 || "http://"+got.Host != s.url {
		t.Errorf("got %v of %v", got.Header, got.Host)
	}
}

func TestTLSIsSpokenWhereTheAddressSaysSo(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer s.Close()
	_, err := client(t, wire.Config{}).Do(minute(t), s.URL, post("{}"))
	if err == nil || wire.WrittenOf(err) != wire.NoByte {
		t.Errorf("got %v: a certificate that nobody vouches for was accepted", err)
	}
}

func TestNothingIsSentWhenTheCallerIsNotReady(t *testing.T) {
	read1 := make(chan error, 1)
	s := serve(t, func(_ int, _ net.Conn, r *bufio.Reader) { _, err := r.ReadByte(); read1 <- err })
	late := errors.New("too late")
	r := post("{}")
	r.Ready = func() error { return late }
	_, err := client(t, wire.Config{}).Do(minute(t), s.url, r)
	if !errors.Is(err, late) || wire.WrittenOf(err) != wire.NoByte {
		t.Errorf("got %v", err)
	}
	if err := <-read1; err == nil {
		t.Error("the engine got a byte")
	}
}
