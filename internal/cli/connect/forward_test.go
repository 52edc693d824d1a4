package connect

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// apiServer forwards ports as an API server does that knows SPDY only: it dials what "port" of the pod
// stands for.
type apiServer struct {
	t *testing.T
	// reach is what a port leads to; an error is told on the error stream.
	reach func(port string) (net.Conn, error)
	links atomic.Int64
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/namespaces/berthmaster-system/pods/manager-0/portforward" || r.Method != http.MethodPost {
		http.Error(w, "not here", http.StatusForbidden) // what the WebSocket form gets
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 16)
	link := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if link == nil {
		return
	}
	a.links.Add(1)
	defer link.Close()
	complaints := map[string]httpstream.Stream{}
	for {
		select {
		case s := <-streams:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				complaints[id] = s
				continue
			}
			go a.join(s, complaints[id])
		case <-link.CloseChan():
			return
		}
	}
}

func (a *apiServer) join(data, complaint httpstream.Stream) {
	conn, err := a.reach(data.Headers().Get(corev1.PortHeader))
	if err != nil {
		fmt.Fprint(complaint, err)
		complaint.Close()
		data.Close()
		return
	}
	go func() {
		_, _ = io.Copy(conn, data)
		conn.Close()
	}()
	_, _ = io.Copy(data, conn)
	data.Close()
	complaint.Close()
}

// forwardTo starts the API server and returns a port-forward through it to port 8085.
func forwardTo(t *testing.T, reach func(port string) (net.Conn, error)) (*Forward, *apiServer) {
	t.Helper()
	api := &apiServer{t: t, reach: reach}
	server := httptest.NewServer(api)
	f := NewForward(&rest.Config{Host: server.URL}, "berthmaster-system", "manager-0", 8085)
	t.Cleanup(func() { f.Close(); server.CloseClientConnections(); server.Close() })
	return f, api
}

func TestCallsGoThroughThePortForwardOverOneLink(t *testing.T) {
	router := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer router.Close()
	f, api := forwardTo(t, func(port string) (net.Conn, error) {
		if port != "8085" {
			return nil, fmt.Errorf("asked for port %s", port)
		}
		return net.Dial("tcp", router.Listener.Addr().String())
	})
	wire := &http.Transport{DialContext: f.Dial, DisableKeepAlives: true}
	for i := range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://manager-0/%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer mine")
		reply, err := wire.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if want := fmt.Sprintf("/%d Bearer mine", i); err != nil || string(body) != want {
			t.Errorf("got %q, %v, want %q", body, err, want)
		}
	}
	if n := api.links.Load(); n != 1 {
		t.Errorf("%d links to the API server for three calls", n)
	}
}

func TestAPortThatNobodyListensOnIsToldInTheKubeletsWords(t *testing.T) {
	f, _ := forwardTo(t, func(string) (net.Conn, error) { return nil, errors.New("connect: connection refused") })
	client := &http.Client{Transport: &http.Transport{DialContext: f.Dial}, Timeout: time.Minute}
	reply, err := client.Get("http://manager-0/")
	if err == nil {
		reply.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "port-forward to pod manager-0: connect: connection refused") {
		t.Errorf("error %v", err)
	}
}

func TestAnAPIServerThatForbidsThePortForwardIsQuoted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"may not create pods/portforward","reason":"Forbidden","code":403}`)
	}))
	defer server.Close()
	f := NewForward(&rest.Config{Host: server.URL}, "berthmaster-system", "manager-0", 8085)
	defer f.Close()
	if _, err := f.Dial(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "may not create pods/portforward") {
		t.Errorf("error %v", err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
