package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestOnlyCallsToThisMachineAreAnsweredWhereNobodyIsAskedWhoTheyAre(t *testing.T) {
	names := []string{"Trainer.lab", "fd00::7", ""}
	for name, c := range map[string]struct {
		host string
		ours bool
	}{
		"localhost":                             {"localhost", true},
		"localhost and a port":                  {"localhost:8085", true},
		"localhost in capitals":                 {"LocalHost:8085", true},
		"localhost with the dot of the root":    {"localhost.:8085", true},
		"a loopback address":                    {"127.0.0.1", true},
		"another loopback address and a port":   {"127.0.0.31:30000", true},
		"IPv6's":                                {"[::1]", true},
		"IPv6's and a port":                     {"[::1]:8085", true},
		"IPv4's as IPv6":                        {"[::ffff:127.0.0.1]:8085", true},
		"a name that was given":                 {"trainer.lab:8085", true},
		"an address that was given":             {"[fd00::7]:8085", true},
		"a name that is made to mean 127.0.0.1": {"evil.example:8085", false},
		"one that looks like localhost":         {"localhost.evil.example", false},
		"one that ends like it":                 {"evil-localhost:8085", false},
		"one that begins with an address":       {"127.0.0.1.evil.example:8085", false},
		"one below the name that was given":     {"x.trainer.lab:8085", false},
		"the unspecified address":               {"0.0.0.0:8085", false},
		"IPv6's unspecified address":            {"[::]:8085", false},
		"this machine's address in the network": {"10.0.0.7:8085", false},
		"an address in another form":            {"2130706433:8085", false},
		"an address that is cut short":          {"127.1:8085", false},
		"no name at all":                        {"", false},
		"a port only":                           {":8085", false},
		"brackets around nothing":               {"[]:8085", false},
		"a user before the name":                {"localhost@evil.example", false},
		"several names":                         {"localhost,evil.example", false},
		"a path":                                {"localhost/evil.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ToThisMachine(c.host, names); got != c.ours {
				t.Errorf("%q: %t", c.host, got)
			}
			s, err := New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}, Hosts: names})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r := httptest.NewRequest(method, "/v1alpha1/namespaces/rl/inferencepools/policy/leases:batch", strings.NewReader("{}"))
				r.Host = c.host
				w := httptest.NewRecorder()
				s.addressed(w, r)
				if got := w.Code != http.StatusForbidden; got != c.ours || !got && !strings.Contains(w.Body.String(), `"reason":"Forbidden"`) {
					t.Errorf("%s to %q: got %d %s", method, c.host, w.Code, w.Body)
				}
			}
		})
	}
}

func TestWhoIsAskedWhoTheyAreMayCallByAnyName(t *testing.T) {
	s, err := New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}, Authorizer: &gate{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "berthmaster-leases.berthmaster-system.svc:8085"
	w := httptest.NewRecorder()
	if !s.Addressed(w, r) || w.Body.Len() != 0 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestACallToAnotherMachineKeepsNoConnectionByItsBody(t *testing.T) {
	w := unread(t, nil, nil)
	path := strings.TrimPrefix(w.pool, w.base)
	got, err := io.ReadAll(w.raw("POST " + path + "/leases HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1\r\n\r\n"))
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 403 ") {
		t.Errorf("%v: %.60q, want 403 and the end", err, got)
	}
}
