package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/livepage"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

func TestNothingIsServedToANameThatIsMadeToMeanThisMachine(t *testing.T) {
	keys, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	pools := router.NewPools()
	api, err := server.New(server.Config{Pools: pools, Keys: keys, Hosts: []string{"trainer.lab"}})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) })
	leases := &leaseAPI{leases: api, proxy: reached, page: livepage.New()}
	open := &security{hosts: []string{"trainer.lab"}}
	const proxied = poolPath + "/senders/train/proxy"
	for _, port := range []struct {
		served http.Handler
		calls  []string
	}{
		{leases, []string{"GET " + livepage.Path, "GET " + poolPath, "POST " + poolPath + "/leases", "GET " + poolPath + "/watch", "GET /v1alpha1/inferencepools",
			"GET " + proxied + "/v1/models", "POST " + proxied + "/generate", "POST " + proxied + "/release_memory_occupation"}},
		{open.metrics(), []string{"GET /metrics"}},
	} {
		for _, call := range port.calls {
			method, path, _ := strings.Cut(call, " ")
			for host, ours := range map[string]bool{"127.0.0.1:8085": true, "localhost:8085": true, "trainer.lab:8085": true, "evil.example:8085": false, "10.0.0.7:8085": false} {
				r := httptest.NewRequest(method, path, nil)
				r.Host = host
				w := httptest.NewRecorder()
				port.served.ServeHTTP(w, r)
				if got := w.Code != http.StatusForbidden; got != ours {
					t.Errorf("%s to %s: got %d %.200s", call, host, w.Code, w.Body)
				}
			}
		}
	}
}

func TestWhereCallersAreAuthenticatedTheyMayCallByAnyName(t *testing.T) {
	keys, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	pools := router.NewPools()
	gate := access.New(access.Config{Reviewer: access.Kubernetes{}, Pools: pools})
	api, err := server.New(server.Config{Pools: pools, Keys: keys, Authorizer: gate})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	transparent, err := proxy.New(proxy.Config{Pools: pools, Authorizer: gate})
	if err != nil {
		t.Fatal(err)
	}
	leases := &leaseAPI{leases: api, proxy: transparent, page: livepage.New()}
	for path, want := range map[string]int{livepage.Path: 200, poolPath: 401, poolPath + "/senders/train/proxy/v1/models": 401} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "berthmaster-leases.berthmaster-system.svc:8085"
		w := httptest.NewRecorder()
		leases.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

func TestTheNamesOfACertificateAndTheAdvertisedAddressAreThisMachines(t *testing.T) {
	for arguments, want := range map[string][]string{
		"":                         nil,
		"--manager-namespace=ours": nil,
		"--tls-names=a,b.c":        {"a", "b.c"},
		"--lease-advertise-address=10.0.0.7:8085":                {"10.0.0.7"},
		"--tls-names=a --lease-advertise-address=[fd00::7]:8085": {"a", "fd00::7"},
	} {
		o, err := parse(t, strings.Fields(arguments)...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o.hosts()); diff != "" {
			t.Errorf("%s: %s", arguments, diff)
		}
	}
}
