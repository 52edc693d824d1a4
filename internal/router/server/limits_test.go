package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// limited serves one backend under other limits.
func limited(t *testing.T, set func(*Limits)) *world {
	t.Helper()
	return newWorld(t, 1, func(c *Config, _ *router.Fleet) { set(&c.Limits) })
}

func TestBodyBytesBoundsABody(t *testing.T) {
	w := limited(t, func(l *Limits) { l.BodyBytes = 200 })
	w.lease("r1", "s1")
	r := w.acquire("r2", strings.Repeat("s", 128))
	want(t, r, http.StatusBadRequest, "Invalid")
	if r.text("field") != "body" {
		t.Error(r.raw)
	}
}

func TestBatchBytesBoundsABatch(t *testing.T) {
	w := limited(t, func(l *Limits) { l.BatchBytes = 200 })
	r := w.batch(ask("r1", "s1"), ask("r2", "s2"), ask("r3", "s3"))
	want(t, r, http.StatusBadRequest, "Invalid")
	if r.text("field") != "body" {
		t.Error(r.raw)
	}
}

func TestBatchRequestsBoundsABatch(t *testing.T) {
	w := limited(t, func(l *Limits) { l.BatchRequests = 2 })
	if r := w.batch(ask("r1", "s1"), ask("r2", "s2")); r.status != http.StatusOK {
		t.Fatal(r.raw)
	}
	r := w.batch(ask("r3", "s1"), ask("r4", "s2"), ask("r5", "s3"))
	want(t, r, http.StatusBadRequest, "Invalid")
	if r.text("field") != "requests" || w.outstanding() != 2 {
		t.Errorf("%d counted: %s", w.outstanding(), r.raw)
	}
}

func TestHeaderBytesBoundsHeaders(t *testing.T) {
	w := limited(t, func(l *Limits) { l.HeaderBytes = 1 << 10 })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Flood", strings.Repeat("x", 8<<10)) // net/http grants 4 KiB beyond
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(res.Status)
	}
}

func TestWaitBoundsWaitSeconds(t *testing.T) {
	w := limited(t, func(l *Limits) { l.Wait = 5 * time.Second })
	w.lease("r1", "s1", object{"waitSeconds": 5})
	want(t, w.acquire("r2", "s2", object{"waitSeconds": 6}), http.StatusBadRequest, "Invalid")
}

func TestWaitersPerPoolBoundsThoseWhoWaitAndNobodyElse(t *testing.T) {
	w := limited(t, func(l *Limits) { l.WaitersPerPool = 1 })
	w.change(fenceTrain)
	first := w.start(t.Context(), ask("r1", "s1", object{"waitSeconds": 600}))
	w.waiting(1)
	// A second one is answered at once, by what stands now.
	want(t, w.acquire("r2", "s2", object{"waitSeconds": 600}), http.StatusLocked, "SenderFenced")
	w.lease("r3", "s3", object{"sender": "eval", "waitSeconds": 600})
	w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
	if r := <-first; r.status != http.StatusCreated {
		t.Error(r.raw)
	}
}

func TestWaitersOfOnePoolTakeNoRoomFromAnother(t *testing.T) {
	c := newCrowd(1)
	a, b := router.PoolKey{Name: "a"}, router.PoolKey{Name: "b"}
	leave, ok := c.enter(a)
	if !ok {
		t.Fatal("no room in an empty pool")
	}
	if _, ok := c.enter(a); ok {
		t.Error("two where one may wait")
	}
	other, ok := c.enter(b)
	if !ok {
		t.Error("pool b has no room because of pool a")
	}
	leave()
	other()
	if len(c.inside) != 0 {
		t.Errorf("%v is kept", c.inside)
	}
}

func TestWatchersPerPoolBoundsStreams(t *testing.T) {
	w := limited(t, func(l *Limits) { l.WatchersPerPool = 1 })
	s := w.watch("")
	s.next("State")
	want(t, w.do(http.MethodGet, w.pool+"/watch", nil), http.StatusTooManyRequests, "Contended")
	s.close()
	eventually(t, "room for another watcher", func() bool { return w.server.watchers.size() == 0 })
}

// size is how many are inside, in all pools.
func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, inside := range c.inside {
		n += inside
	}
	return n
}

// raw opens a connection and writes text on it.
func (w *world) raw(text string) net.Conn {
	w.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

func TestReadBoundsASlowRequest(t *testing.T) {
	w := limited(t, func(l *Limits) { l.Read = 50 * time.Millisecond })
	path := strings.TrimPrefix(w.pool, w.base)
	for name, text := range map[string]string{
		"a header that never ends": "POST " + path + "/leases HTTP/1.1\r\nHost: x\r\n",
		"a body that never comes":  "POST " + path + "/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := io.ReadAll(w.raw(text)); err != nil {
				t.Fatalf("the connection stays open: %v", err)
			}
		})
	}
}

func TestReadDoesNotCutAClientThatWaits(t *testing.T) {
	w := limited(t, func(l *Limits) { l.Read, l.Write = 20*time.Millisecond, 20*time.Millisecond })
	w.change(fenceTrain)
	got := w.start(t.Context(), ask("r1", "s1", object{"waitSeconds": 600}))
	w.waiting(1)
	over := time.NewTimer(200 * time.Millisecond) // ten times what would cut it
	defer over.Stop()
	select {
	case r := <-got:
		t.Fatalf("answered early: %d %s", r.status, r.raw)
	case <-over.C:
	}
	w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
	if r := <-got; r.status != http.StatusCreated {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

func TestWriteBoundsAClientThatNeverReads(t *testing.T) {
	// A large pool whose history holds one event: two changes at once send the whole state,
	// which fills the socket's buffers soon.
	w := newWorld(t, 500, func(c *Config, _ *router.Fleet) {
		c.Limits.Write, c.Limits.WatchPeriod, c.Limits.WatchHistory = 50*time.Millisecond, time.Millisecond, 1
	})
	conn := w.raw("GET " + strings.TrimPrefix(w.pool, w.base) + "/watch HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		t.Fatal(err)
	}
	n := 0
	eventually(t, "the stream is given up", func() bool {
		n++
		w.change(func(f *router.Fleet) {
			f.Published = router.Version(fmt.Sprint("v", n))
			f.Senders[0].Access = []router.Access{router.AccessOpen, router.AccessFenced}[n%2]
		})
		return w.server.watchers.size() == 0
	})
}

func TestIdleClosesAConnectionWithoutCalls(t *testing.T) {
	w := limited(t, func(l *Limits) { l.Idle = 50 * time.Millisecond })
	conn := w.raw("GET " + strings.TrimPrefix(w.pool, w.base) + " HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatalf("the connection stays open: %v", err)
	}
}

func TestShutdownCutsACallThatDoesNotEnd(t *testing.T) {
	// The handler waits for a body that never comes, for longer than the server may take.
	w := limited(t, func(l *Limits) { l.Read, l.Shutdown = time.Hour, 50*time.Millisecond })
	conn := w.raw("POST " + strings.TrimPrefix(w.pool, w.base) + "/leases HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatal(line, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.stop() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("the server waits for a call that does not end")
	}
}

func TestConfigNamesTheFieldThatCannotBeUsed(t *testing.T) {
	good := func() Config { return Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}} }
	for field, spoil := range map[string]func(*Config){
		"Pools":                  func(c *Config) { c.Pools = nil },
		"Keys.Current":           func(c *Config) { c.Keys = Keys{} },
		"BindAddress":            func(c *Config) { c.BindAddress = "localhost" },
		`"0.0.0.0:80"`:           func(c *Config) { c.BindAddress = "0.0.0.0:80" },
		`":80"`:                  func(c *Config) { c.BindAddress = ":80" },
		`"lease.example:80"`:     func(c *Config) { c.BindAddress = "lease.example:80" },
		"Limits.BodyBytes":       func(c *Config) { c.Limits.BodyBytes = -1 },
		"Limits.BatchBytes":      func(c *Config) { c.Limits.BatchBytes = -1 },
		"Limits.LargeBytes":      func(c *Config) { c.Limits.LargeBytes = -1 },
		"Limits.BatchRequests":   func(c *Config) { c.Limits.BatchRequests = -1 },
		"Limits.HeaderBytes":     func(c *Config) { c.Limits.HeaderBytes = -1 },
		"Limits.Wait":            func(c *Config) { c.Limits.Wait = -1 },
		"Limits.WaitersPerPool":  func(c *Config) { c.Limits.WaitersPerPool = -1 },
		"Limits.WatchersPerPool": func(c *Config) { c.Limits.WatchersPerPool = -1 },
		"Limits.Read":            func(c *Config) { c.Limits.Read = -1 },
		"Limits.Write":           func(c *Config) { c.Limits.Write = -1 },
		"Limits.Unread":          func(c *Config) { c.Limits.Unread = -1 },
		"Limits.Idle":            func(c *Config) { c.Limits.Idle = -1 },
		"Limits.Shutdown":        func(c *Config) { c.Limits.Shutdown = -1 },
		"Limits.Heartbeat":       func(c *Config) { c.Limits.Heartbeat = -1 },
		"Limits.WatchPeriod":     func(c *Config) { c.Limits.WatchPeriod = -1 },
		"Limits.WatchLinger":     func(c *Config) { c.Limits.WatchLinger = -1 },
		"Limits.WatchHistory":    func(c *Config) { c.Limits.WatchHistory = -1 },
	} {
		c := good()
		spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, address := range []string{"", "127.0.0.1:0", "127.9.9.9:1", "[::1]:0", "localhost:0"} {
		c := good()
		c.BindAddress = address
		if _, err := New(c); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}
