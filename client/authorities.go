package client

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
)

// errNoAuthorities: a file that should hold certificates of authorities holds none.
var errNoAuthorities = errors.New("there is no certificate in it")

// authorities are those of a file that is replaced while the process runs. A nil one is the system's.
type authorities struct {
	path string

	mu    sync.Mutex
	text  []byte         // guarded by mu; what the file said when it was last good
	roots *x509.CertPool // guarded by mu; of text
}

// newAuthorities reads a file for the first time; an empty path is nil.
func newAuthorities(path string) (*authorities, error) {
	if path == "" {
		return nil, nil
	}
	a := &authorities{path: path}
	_, err := a.now()
	return a, err
}

// now is whom the file says to trust: the same pool while it says the same. One that is missing or
// broken for a moment, as in the middle of its replacement, leaves what it said before.
func (a *authorities) now() (*x509.CertPool, error) {
	if a == nil {
		return nil, nil
	}
	text, err := os.ReadFile(a.path)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && (a.roots == nil || !bytes.Equal(text, a.text)) {
		if roots := x509.NewCertPool(); roots.AppendCertsFromPEM(text) {
			a.text, a.roots = text, roots
		} else {
			err = errNoAuthorities
		}
	}
	if a.roots == nil {
		return nil, fmt.Errorf("read the authorities in %s: %w", a.path, err)
	}
	return a.roots, nil
}

// line carries calls to the router. It makes its connections anew once the authorities have changed:
// those under way go on, and no new call is made on a connection that was trusted by authorities of
// before.
type line struct {
	trust *authorities
	make  func(*x509.CertPool) *http.Transport

	mu    sync.Mutex
	roots *x509.CertPool  // guarded by mu; of carry
	carry *http.Transport // guarded by mu; nil before the first call
}

// RoundTrip makes a call on connections under the authorities of now.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	carry, err := l.now()
	if err != nil {
		return nil, err
	}
	return carry.RoundTrip(r)
}

func (l *line) now() (*http.Transport, error) {
	roots, err := l.trust.now()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.carry == nil || l.roots != roots {
		if l.carry != nil {
			l.carry.CloseIdleConnections()
		}
		l.roots, l.carry = roots, l.make(roots)
	}
	return l.carry, nil
}

// rest lets go of connections that rest.
func (l *line) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.carry != nil {
		l.carry.CloseIdleConnections()
	}
}
