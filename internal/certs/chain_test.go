package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"testing"
	"time"
)

var (
	loopback = []net.IP{net.IPv4(127, 0, 0, 1).To4()}

	began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"berthmaster-leases.system.svc", "localhost"}
)

func next(t *testing.T, c chain, names []string, now time.Time) chain {
	t.Helper()
	out, err := c.next(names, now)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// trusts says whether a client with that bundle takes the chain's certificate for that name at that time.
func trusts(t *testing.T, bundle []byte, c chain, name string, now time.Time) error {
	t.Helper()
	m, err := c.material()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = m.Certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
	return err
}

// Twelve years are two changes of authority and seventy of the serving certificate.
func TestAClientWhoseBundleIsWeeksOldTrustsEveryCertificateForYears(t *testing.T) {
	const stale = 28 * 24 * time.Hour
	type read struct {
		at     time.Time
		bundle []byte
	}
	var reads []read
	c, leaves, authorities := chain(nil), map[string]bool{}, map[string]bool{}
	for now := began; now.Before(began.AddDate(12, 0, 0)); now = now.Add(10 * 24 * time.Hour) {
		c = next(t, c, names, now)
		leaves[string(c[leafCert])], authorities[string(c[caCert])] = true, true
		reads = append(reads, read{now, c.bundle()})
		for now.Sub(reads[0].at) > stale {
			reads = reads[1:]
		}
		for _, client := range []read{reads[0], reads[len(reads)-1]} {
			for _, name := range []string{names[0], "127.0.0.1"} {
				if err := trusts(t, client.bundle, c, name, now); err != nil {
					t.Fatalf("%s, with a bundle of %s, as %s: %v", now.Format(time.DateOnly), client.at.Format(time.DateOnly), name, err)
				}
			}
		}
	}
	if len(leaves) < 60 || len(authorities) < 3 {
		t.Errorf("%d serving certificates and %d authorities in twelve years: nothing rotates", len(leaves), len(authorities))
	}
}

func TestNothingChangesThatIsNotDue(t *testing.T) {
	c := next(t, nil, names, began)
	if !c.same(next(t, c, names, began.Add(24*time.Hour))) {
		t.Error("a day later it is another chain")
	}
}

func TestWhatCannotBeUsedIsReplaced(t *testing.T) {
	other := next(t, nil, names, began)
	late := next(t, nil, names, began.AddDate(40, 0, 0))
	for what, c := range map[string]struct {
		spoil func(chain)
		after time.Duration
		names []string
	}{
		"the authority's key is missing":     {func(c chain) { delete(c, caKey) }, time.Hour, names},
		"the authority's key is another's":   {func(c chain) { c[caKey] = other[caKey] }, time.Hour, names},
		"the authority is no PEM":            {func(c chain) { c[caCert] = []byte("x") }, time.Hour, names},
		"the certificate is missing":         {func(c chain) { delete(c, leafCert) }, time.Hour, names},
		"the certificate's key is another's": {func(c chain) { c[leafKey] = c[caKey] }, time.Hour, names},
		"the certificate is of someone else": {func(c chain) { c[leafCert], c[leafKey] = other[leafCert], other[leafKey] }, time.Hour, names},
		"the predecessor is no certificate":  {func(c chain) { c[previousCert] = []byte("x") }, time.Hour, names},
		"nothing is there":                   {func(c chain) { clear(c) }, time.Hour, names},
		"nobody has looked for twenty years": {func(chain) {}, 20 * 365 * 24 * time.Hour, names},
		"it is for another name than before": {func(chain) {}, time.Hour, []string{"leases.other.svc"}},
		"its authority begins in the future": {func(c chain) { maps.Copy(c, late) }, time.Hour, names},
	} {
		chain, now := next(t, nil, names, began), began.Add(c.after)
		c.spoil(chain)
		chain = next(t, chain, c.names, now)
		if err := trusts(t, chain.bundle(), chain, c.names[0], now); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !chain.same(next(t, chain, c.names, now)) {
			t.Errorf("%s: it does not come to rest", what)
		}
	}
}

func TestAnAuthorityCannotSignForOtherServices(t *testing.T) {
	c := next(t, nil, names, began)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.bundle())
	for what, k := range map[string]struct {
		named, asked string
		addresses    []net.IP
		may          bool
	}{
		"the manager's own name":         {names[0], names[0], nil, true},
		"the manager's own address":      {names[0], "127.0.0.1", loopback, true},
		"the API server":                 {"kubernetes.default.svc", "kubernetes.default.svc", nil, false},
		"a name that ends like its own":  {"x" + names[0], "x" + names[0], nil, false},
		"another service, as well":       {"other.system.svc", "other.system.svc", loopback, false},
		"an address that is not its own": {names[0], "10.0.0.1", []net.IP{net.IPv4(10, 0, 0, 1)}, false},
	} {
		leaf, err := issue(c.signer(caCert, caKey), &x509.Certificate{
			NotBefore: began, NotAfter: began.Add(LeafLife), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			DNSNames: []string{k.named}, IPAddresses: k.addresses,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = leaf.certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: k.asked, CurrentTime: began})
		var invalid x509.CertificateInvalidError
		if k.may && err != nil || !k.may && (!errors.As(err, &invalid) || invalid.Reason != x509.CANotAuthorizedForThisName) {
			t.Errorf("%s: %v, want trusted: %t, or else that the authority may not sign for it", what, err, k.may)
		}
	}
}

func TestAPredecessorIsTrustedUntilItExpires(t *testing.T) {
	c := next(t, nil, names, began)
	old := string(c[caCert])
	var seen, forgotten bool
	for now := began; now.Before(began.AddDate(6, 0, 0)); now = now.Add(20 * 24 * time.Hour) {
		c = next(t, c, names, now)
		seen = seen || string(c[previousCert]) == old
		forgotten = seen && c[previousCert] == nil
	}
	if !seen || !forgotten {
		t.Errorf("kept after it: %t, dropped once it has expired: %t", seen, forgotten)
	}
}

func TestErrorsOfKeysSayNothingOfThem(t *testing.T) {
	if _, err := parseSigner([]byte("marked-cert"), []byte("marked-key")); err == nil || fmt.Sprint(err) != errKeyPair.Error() {
		t.Error(err)
	}
}
