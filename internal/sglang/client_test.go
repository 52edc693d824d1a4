package sglang

import (
	"context"
	"encoding/json"
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

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is a scripted engine: it answers from a table by path and remembers what it was asked.
type engine struct {
	replies map[string]reply

	mu   sync.Mutex
	seen []seen // guarded by mu
}

type reply struct {
	code int
	body string
}

type seen struct{ Method, URI, Auth, Body string }

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.seen = append(e.seen, seen{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), string(body)})
	e.mu.Unlock()
	answer, known := e.replies[r.URL.Path]
	if !known {
		answer = reply{404, `{"detail":"Not Found"}`}
	}
	w.WriteHeader(answer.code)
	_, _ = io.WriteString(w, answer.body)
}

func (e *engine) asked() []seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]seen(nil), e.seen...)
}

// start serves the engine on loopback and returns a client of it.
func start(t *testing.T, handler http.Handler, keys KeySource) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	base, err := ParseBaseURL(server.URL + "//")
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	return New(base, transport, keys)
}

func context60(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestHealthTellsTheAnswersApart(t *testing.T) {
	cases := map[string]struct {
		reply reply
		code  int
	}{
		"200 is healthy":        {reply{200, ""}, 0},
		"503 is not":            {reply{503, ""}, 503},
		"a redirect is not":     {reply{302, ""}, 302},
		"another success isn't": {reply{204, ""}, 204},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fake := &engine{replies: map[string]reply{"/health": c.reply}}
			client := start(t, fake, func() Keys { return Keys{API: "k", Admin: "a"} })
			if err := client.Health(context60(t)); Code(err) != c.code || (err == nil) != (c.code == 0) {
				t.Errorf("got %v, want code %d", err, c.code)
			}
			if diff := cmp.Diff([]seen{{Method: "GET", URI: "/health"}}, fake.asked()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	elsewhere := &engine{replies: map[string]reply{"/health": {200, ""}}}
	target := httptest.NewServer(elsewhere)
	defer target.Close()
	client := start(t, http.RedirectHandler(target.URL+"/health", http.StatusTemporaryRedirect), nil)
	if err := client.Health(context60(t)); Code(err) != http.StatusTemporaryRedirect {
		t.Errorf("got %v, want the redirect itself", err)
	}
	if asked := elsewhere.asked(); len(asked) != 0 {
		t.Errorf("the other server was asked %v", asked)
	}
}

func TestRefusedMeansThatNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, err := ParseBaseURL("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := New(base, NewTransport(), nil).Health(context60(t)); !Refused(err) {
		t.Errorf("got %v, want a refused connection", err)
	}
	client := start(t, &engine{}, nil)
	if err := client.Health(context60(t)); err == nil || Refused(err) {
		t.Errorf("got %v, want an answer that is not a refusal", err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	hung := make(chan struct{})
	client := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(hung)
		<-r.Context().Done()
	}), nil)
	ctx, cancel := context.WithCancel(context60(t))
	go func() {
		<-hung
		cancel()
	}()
	if err := client.Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestAReplyIsReadUpToItsBoundOnly(t *testing.T) {
	for name, extra := range map[string]int{"at the bound": 0, "one byte more": 1} {
		t.Run(name, func(t *testing.T) {
			fake := &engine{replies: map[string]reply{"/health": {200, strings.Repeat("x", smallReply+extra)}}}
			err := start(t, fake, nil).Health(context60(t))
			if got := errors.Is(err, ErrReplyTooLarge); got != (extra > 0) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEachRouteTakesItsOwnKey(t *testing.T) {
	cases := map[string]struct {
		keys        Keys
		info, abort string
	}{
		"no keys":        {Keys{}, "", ""},
		"api key only":   {Keys{API: "api"}, "Bearer api", "Bearer api"},
		"both keys":      {Keys{API: "api", Admin: "adm"}, "Bearer api", "Bearer adm"},
		"admin key only": {Keys{Admin: "adm"}, "", "Bearer adm"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fake := &engine{replies: map[string]reply{"/server_info": {200, "{}"}, "/abort_request": {200, ""}}}
			client := start(t, fake, func() Keys { return c.keys })
			if _, err := client.ServerInfo(context60(t)); err != nil {
				t.Fatal(err)
			}
			if err := client.AbortRequest(context60(t), "rid-1"); err != nil {
				t.Fatal(err)
			}
			want := []seen{
				{"GET", "/server_info", c.info, ""},
				{"POST", "/abort_request", c.abort, `{"rid":"rid-1"}`},
			}
			if diff := cmp.Diff(want, fake.asked()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARotatedKeyIsUsedAtOnce(t *testing.T) {
	fake := &engine{replies: map[string]reply{"/server_info": {200, "{}"}}}
	turn := 0
	client := start(t, fake, func() Keys { turn++; return Keys{API: fmt.Sprint("key-", turn)} })
	for range 2 {
		if _, err := client.ServerInfo(context60(t)); err != nil {
			t.Fatal(err)
		}
	}
	if got := fake.asked()[1].Auth; got != "Bearer key-2" {
		t.Errorf("second call carried %q", got)
	}
}

func TestAbortWithoutARIDIsNotSent(t *testing.T) {
	fake := &engine{}
	if err := start(t, fake, nil).AbortRequest(context60(t), ""); !errors.Is(err, ErrNoRID) {
		t.Errorf("got %v", err)
	}
	if asked := fake.asked(); len(asked) != 0 {
		t.Errorf("the engine was asked %v", asked)
	}
}

func TestAnErrorCarriesTheEnginesWordsBoundedAndOnOneLine(t *testing.T) {
	cases := map[string]struct{ body, want string }{
		"an HTTP exception":    {`{"object":"error","message":"rid in use","type":"BadRequest","code":400}`, "rid in use"},
		"a handler's error":    {`{"error":{"message":"no such adapter"}}`, "no such adapter"},
		"an authorisation":     {`{"error":"Unauthorized"}`, "Unauthorized"},
		"a route's detail":     {`{"detail":"Not Found"}`, "Not Found"},
		"plain text":           {"Flush cache failed.\n", "Flush cache failed."},
		"control characters":   {`{"message":"a\u001b[31m\nb"}`, "a [31m b"},
		"nothing":              {"", ""},
		"JSON of another form": {`{"x":1}`, ""},
		"an endless message":   {strings.Repeat("é", 1000), strings.Repeat("é", maxMessage) + "..."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fake := &engine{replies: map[string]reply{"/health": {400, c.body}}}
			err := start(t, fake, nil).Health(context60(t))
			status, ok := errors.AsType[*StatusError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(&StatusError{Route: "/health", Code: 400, Message: c.want}, status); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoKeyIsEverInAnError(t *testing.T) {
	client := start(t, &engine{}, func() Keys { return Keys{API: "marked-key", Admin: "marked-key"} })
	_, infoErr := client.ServerInfo(context60(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{infoErr, client.AbortRequest(context60(t), "r"), client.AbortRequest(ended, "r")} {
		if err == nil || strings.Contains(err.Error(), "marked-key") {
			t.Errorf("got %v", err)
		}
	}
}

func TestARequestIsNeverRepeatedAfterItsConnectionBroke(t *testing.T) {
	var mu sync.Mutex
	count := 0
	client := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&struct{}{})
		mu.Lock()
		count++
		mu.Unlock()
		panic(http.ErrAbortHandler)
	}), nil)
	if err := client.AbortRequest(context60(t), "rid-1"); err == nil {
		t.Error("a cut connection is not an answer")
	}
	mu.Lock()
	defer mu.Unlock()
	if count != 1 {
		t.Errorf("the engine saw the request %d times", count)
	}
}
