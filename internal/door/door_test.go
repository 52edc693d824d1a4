package door

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a served port behind a door.
type place struct {
	t    *testing.T
	door *Door
	addr string
	// Calls of /held tell entered, and are kept until release.
	held    chan struct{}
	release func()
	entered chan struct{}
	// told is what the log says of handshakes.
	told note
}

// note is a text that is written while it is read.
type note struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *note) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *note) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// open serves a port with room for so many. Its connections, which the door let in, go through each before anything
// else sees them.
func open(t *testing.T, most int, secure *tls.Config, each ...func(*place, net.Conn) net.Conn) *place {
	t.Helper()
	return openTo(t, most, secure, func(d *Door, s *http.Server) { s.ConnState = d.Watch }, each...)
}

// openTo is open with a server that tells the door in another way.
func openTo(t *testing.T, most int, secure *tls.Config, watched func(*Door, *http.Server), each ...func(*place, net.Conn) net.Conn) *place {
	t.Helper()
	p := &place{t: t, door: New(most), held: make(chan struct{}), entered: make(chan struct{}, 100)}
	p.release = sync.OnceFunc(func() { close(p.held) })
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	guarded := p.door.Guard(l)
	for _, through := range each {
		guarded = hooked{guarded, func(c net.Conn) net.Conn { return through(p, c) }}
	}
	if secure != nil {
		guarded = tls.NewListener(guarded, secure)
	}
	guarded = Count(guarded, log.New(&p.told, "", 0))
	s := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			LetIn(r.Context())
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/held" {
			p.entered <- struct{}{}
			<-p.held
		}
		_, _ = io.WriteString(w, "ok")
	})}
	watched(p.door, s)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(guarded) }()
	t.Cleanup(func() {
		p.release()
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		p.until("nothing is counted after the end", func(c Counts) bool { return c.Open == 0 })
	})
	return p
}

// hooked is a listener whose connections go through each.
type hooked struct {
	net.Listener
	each func(net.Conn) net.Conn
}

func (h hooked) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return h.each(c), nil
}

// visitor is one connection, from an address of its own choice.
type visitor struct {
	net.Conn
	t     *testing.T
	reads *bufio.Reader
}

func (p *place) from(address string) *visitor {
	p.t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 0))}
	c, err := d.DialContext(p.t.Context(), "tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &visitor{Conn: c, t: p.t, reads: bufio.NewReader(c)}
}

func (v *visitor) send(path string) {
	v.t.Helper()
	if _, err := io.WriteString(v, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		v.t.Fatal(err)
	}
}

// answered reads one answer; false: the connection was closed.
func (v *visitor) answered() bool {
	r, err := http.ReadResponse(v.reads, nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return errors.Join(err, r.Body.Close()) == nil
}

func (p *place) until(what string, ok func(Counts) bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok(p.door.Counts()) {
		select {
		case <-tick.C:
		case <-deadline.C:
			p.t.Fatalf("in vain: %s; %+v", what, p.door.Counts())
		}
	}
}

func TestAFloodOfOneAddressDisplacesItselfAndNobodyElse(t *testing.T) {
	p := open(t, 8, nil)
	honest := p.from("127.0.0.2")
	honest.send("/")
	if !honest.answered() {
		t.Fatal("not answered")
	}
	for i := range 50 {
		p.from("127.0.0.3")
		p.until("it is let in", func(c Counts) bool { return c.Open == min(i+2, 8) && c.Displaced == max(0, int64(i)-6) })
	}
	if honest.send("/"); !honest.answered() {
		t.Error("a connection that others had no need of was cut")
	}
	other := p.from("127.0.0.4")
	if other.send("/"); !other.answered() {
		t.Error("a newcomer from elsewhere is not served")
	}
	if c := p.door.Counts(); c.Refused != 0 {
		t.Errorf("%d were refused", c.Refused)
	}
}

func TestNewcomersAreRefusedWhileEveryPlaceIsAtWorkAndLetInAfterwards(t *testing.T) {
	p := open(t, 2, nil)
	first, second := p.from("127.0.0.2"), p.from("127.0.0.2")
	for _, v := range []*visitor{first, second} {
		v.send("/held")
		<-p.entered
	}
	if _, err := p.from("127.0.0.3").reads.ReadByte(); err == nil {
		t.Error("a third connection is served where two may be")
	}
	p.until("it is refused", func(c Counts) bool { return c.Refused == 1 && c.Open == 2 && c.Resting == 0 })
	p.release()
	if !first.answered() || !second.answered() {
		t.Error("a call that was being answered was cut")
	}
	p.until("both rest", func(c Counts) bool { return c.Resting == 2 })
	third := p.from("127.0.0.3")
	if third.send("/"); !third.answered() {
		t.Error("not let in though others rest")
	}
}

func TestConnectionsByTLSAreWatchedAsWell(t *testing.T) {
	made := httptest.NewTLSServer(nil)
	secure := made.TLS.Clone()
	made.Close()
	p := open(t, 1, secure)
	c := tls.Client(p.from("127.0.0.2").Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whose it is does not matter here
	if _, err := io.WriteString(c, "GET /held HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-p.entered
	if _, err := p.from("127.0.0.3").reads.ReadByte(); err == nil {
		t.Error("a second connection is let in while the first is at work")
	}
	if n := p.door.Counts(); n.Refused != 1 || n.Displaced != 0 || n.Resting != 0 {
		t.Errorf("%+v", n)
	}
}

func TestAddressesOfOneNetworkOfIPv6AreOneHome(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7:1": "10.0.0.7/32", "[2001:db8:0:1:2:3:4:5]:1": "2001:db8:0:1::/64", "[::ffff:10.0.0.7]:1": "10.0.0.7/32", "[fe80::1%lo]:1": "fe80::/64",
	} {
		if got := homeOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))).String(); got != want {
			t.Errorf("%s is a guest of %s, want %s", text, got, want)
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if homeOf(a.RemoteAddr()) != (netip.Prefix{}) || Home(netip.Addr{}) != (netip.Prefix{}) {
		t.Error("a pipe has an address")
	}
}
