package certs

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; no outcome depends on it.
const patience = time.Minute

// echo serves a line-wise echo under the holder's certificates until the test ends.
func echo(t *testing.T, h *Holder) (address string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", h.Server())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if _, err := c.Write([]byte(lines.Text() + "\n")); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// says has the other end repeat a line.
func says(t *testing.T, c net.Conn, line string) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("got %q, %v", got, err)
	}
}

// material is that of a new authority.
func material(t *testing.T) *Material {
	t.Helper()
	m, err := next(t, nil, names, time.Now()).material()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStreamsGoOnWhileCertificatesAreReplaced(t *testing.T) {
	var server, client Holder
	server.Use(material(t))
	client.Use(server.now.Load())
	address := echo(t, &server)
	old, err := client.Dial(names[0])(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	says(t, old, "before")
	server.Use(material(t))
	says(t, old, "after")
	if c, err := client.Dial(names[0])(t.Context(), "tcp", address); err == nil {
		c.Close()
		t.Error("a new connection is shown the old certificate still")
	}
	client.Use(server.now.Load())
	fresh, err := client.Dial(names[0])(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	says(t, fresh, "anew")
}

func TestNeighboursAreTrustedByNameAndAuthorityOnly(t *testing.T) {
	var server, friend, stranger, empty Holder
	server.Use(material(t))
	friend.Use(server.now.Load())
	stranger.Use(material(t))
	address := echo(t, &server)
	for what, c := range map[string]struct {
		holder *Holder
		name   string
		trusts bool
	}{
		"the name and authority":  {&friend, names[0], true},
		"another name":            {&friend, "other.system.svc", false},
		"another authority":       {&stranger, names[0], false},
		"nothing to trust in yet": {&empty, names[0], false},
	} {
		conn, err := c.holder.Dial(c.name)(t.Context(), "tcp", address)
		if (err == nil) != c.trusts {
			t.Errorf("%s: %v, want trusted: %t", what, err, c.trusts)
		}
		if conn != nil {
			conn.Close()
		}
	}
}

func TestOldVersionsOfTLSAndConnectionsWithoutItAreRefused(t *testing.T) {
	var h Holder
	address := echo(t, &h)
	dial := func(version uint16) error {
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version}}
		c, err := d.DialContext(t.Context(), "tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	}
	if dial(tls.VersionTLS13) == nil {
		t.Error("a connection is taken without a certificate")
	}
	h.Use(material(t))
	for version, taken := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		if err := dial(version); (err == nil) != taken {
			t.Errorf("%s: %v, want taken: %t", tls.VersionName(version), err, taken)
		}
	}
	plain, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(patience))
	_, _ = plain.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	if line, err := bufio.NewReader(plain).ReadString('\n'); err == nil && line == "HTTP/1.1 200 OK\r\n" {
		t.Error("plain HTTP is served")
	}
}

// mount writes a chain's files as a mounted Secret would.
func mount(t *testing.T, folder string, c chain) {
	t.Helper()
	for _, name := range []string{leafCert, leafKey, caCert} {
		if err := os.WriteFile(filepath.Join(folder, name), c[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesAreReadAgainAndHalfReplacedOnesChangeNothing(t *testing.T) {
	folder := t.TempDir()
	files := Files{filepath.Join(folder, leafCert), filepath.Join(folder, leafKey), filepath.Join(folder, caCert)}
	var h Holder
	if err := files.Load(&h); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	one, other := next(t, nil, names, time.Now()), next(t, nil, names, time.Now())
	mount(t, folder, one)
	if err := files.Load(&h); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var complaints atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		files.Follow(ctx, &h, time.Millisecond, func(error) { complaints.Add(1) })
	}()
	defer func() { cancel(); <-done }()
	first := string(h.Bundle())
	if err := os.WriteFile(files.Key, other[leafKey], 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "somebody complains", func() bool { return complaints.Load() > 0 })
	if string(h.Bundle()) != first {
		t.Error("half of the files is in use")
	}
	mount(t, folder, other)
	eventually(t, "the new files are in use", func() bool { return string(h.Bundle()) == string(other[caCert]) })
	if err := os.Remove(files.Authorities); err != nil {
		t.Fatal(err)
	}
	before := complaints.Load()
	eventually(t, "somebody complains", func() bool { return complaints.Load() > before })
	if string(h.Bundle()) != string(other[caCert]) {
		t.Error("what was in use is not any more")
	}
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.NewTimer(patience), time.NewTicker(time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("in vain: ", what)
		}
	}
}
