package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/berthmaster/berthmaster/internal/certs"
	"github.com/berthmaster/berthmaster/internal/door"
)

func TestPortsBeyondLoopbackNeedAuthenticationOfCallers(t *testing.T) {
	for arguments, want := range map[string]string{
		"--lease-bind-address=:8085":                                          "--lease-bind-address=:8085",
		"--lease-bind-address=0.0.0.0:8085":                                   "--authentication=TokenReview",
		"--lease-bind-address=10.0.0.1:8085":                                  "--lease-bind-address",
		"--lease-bind-address=[::]:8085":                                      "--lease-bind-address",
		"--lease-bind-address=leases.example:8085":                            "--lease-bind-address",
		"--metrics-bind-address=:8080":                                        "--metrics-bind-address=:8080",
		"--lease-bind-address=:8085 --authentication=TokenReview":             "",
		"--metrics-bind-address=:8080 --authentication=TokenReview":           "",
		"--lease-bind-address=localhost:8085":                                 "",
		"--lease-bind-address=[::1]:8085 --metrics-bind-address=0":            "",
		"--health-probe-bind-address=:8081":                                   "",
		"--authentication=Sometimes":                                          "--authentication",
		"--tls=Never":                                                         "--tls",
		"--tls-cert-file=a":                                                   "--tls-key-file",
		"--tls-ca-file=a":                                                     "--tls-ca-file",
		"--tls-names=a,":                                                      "--tls-names",
		"--token-audiences=a":                                                 "--token-audiences",
		"--token-audiences=a,b --authentication=TokenReview":                  "",
		"--tls-cert-file=a --tls-key-file=b --tls-ca-file=c --tls=Everywhere": "",
	} {
		_, err := parse(t, strings.Fields(arguments)...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", arguments, err, want)
		}
	}
}

func TestTheCertificateIsForTheServicesOfItsNamespace(t *testing.T) {
	o, err := parse(t, "--manager-namespace=ours")
	if err != nil {
		t.Fatal(err)
	}
	if names := o.dnsNames(); names[0] != "berthmaster-leases.ours.svc" || len(names) != 7 {
		t.Error(names)
	}
	if o, err = parse(t, "--tls-names=a,b"); err != nil || strings.Join(o.dnsNames(), " ") != "a b" {
		t.Error(o.dnsNames(), err)
	}
}

// inUse has certificates of its own.
func inUse(t *testing.T, ports string) *security {
	t.Helper()
	s := &security{holder: &certs.Holder{}, ports: ports, name: "localhost"}
	own := certs.SelfMade{Secrets: fake.NewClientset().CoreV1().Secrets("n"), Name: servingSecret, Names: []string{"localhost"}, Clock: time.Now}
	if err := own.Load(t.Context(), s.holder); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryPortThatLeavesLoopbackIsServedByTLS(t *testing.T) {
	for address, c := range map[string]struct{ beyond, everywhere bool }{
		":8085": {true, true}, "10.0.0.1:8085": {true, true}, "leases:8085": {true, true},
		"127.0.0.1:8085": {false, true}, "[::1]:8085": {false, true}, "0": {false, false},
	} {
		for ports, want := range map[string]bool{tlsBeyondLoopback: c.beyond, tlsEverywhere: c.everywhere} {
			s := inUse(t, ports)
			if got := s.tls(address) != nil; got != want {
				t.Errorf("%s with --tls=%s: TLS %t, want %t", address, ports, got, want)
			}
		}
	}
}

func TestProbesAreAnsweredByTLSAndSayNoMoreThanWhetherTheyPass(t *testing.T) {
	s := inUse(t, tlsEverywhere)
	for ready, want := range map[error]int{nil: http.StatusOK, errStarting: http.StatusInternalServerError} {
		address := freeAddress(t)
		answers := probes(func(*http.Request) error { return ready })
		p := smallPort{name: "probes", address: address, tls: s.tls(address), door: door.New(8), handler: answers}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- p.Start(ctx) }()
		client := &http.Client{Transport: &http.Transport{DialTLSContext: s.holder.Dial("localhost"), DisableKeepAlives: true}}
		for path, code := range map[string]int{"/healthz": http.StatusOK, "/readyz": want, "/metrics": http.StatusNotFound} {
			untilDone(t, path, func() bool {
				reply, err := client.Get("https://" + address + path)
				if err != nil {
					return false
				}
				defer reply.Body.Close()
				text, err := io.ReadAll(reply.Body)
				return err == nil && reply.StatusCode == code && len(text) < 200 && reply.TLS.Version >= tls.VersionTLS12
			})
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
