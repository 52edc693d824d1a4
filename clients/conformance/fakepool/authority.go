package fakepool

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// vault holds the certificate by which a run's router and engines are known, and the file of the
// authority that the client is given. A nil one is of a run without TLS.
type vault struct {
	file    string
	serving atomic.Pointer[tls.Certificate]
}

// newVault makes what a scenario asks for; nothing, if it is about no authorities. The caller wipes it.
func newVault(t conformance.Trust) (*vault, error) {
	if t.Authority == "" {
		return nil, nil
	}
	folder, err := os.MkdirTemp("", "fakepool-")
	if err != nil {
		return nil, fmt.Errorf("folder of the authorities: %w", err)
	}
	v := &vault{file: filepath.Join(folder, "ca.crt")}
	if err := v.replace(); err != nil {
		v.wipe()
		return nil, err
	}
	if t.Authority == conformance.Another {
		// What is served stays as it is, and the file speaks of somebody else.
		served := v.serving.Load()
		err = v.replace()
		v.serving.Store(served)
	}
	return v, err
}

// replace makes another authority and a certificate of it, the file first: whoever looks in time never
// meets a certificate that it does not speak of.
func (v *vault) replace() error {
	authority, certificate, err := newAuthority(time.Now())
	if err != nil {
		return fmt.Errorf("make an authority: %w", err)
	}
	next := v.file + ".next"
	if err := os.WriteFile(next, authority, 0o600); err != nil {
		return fmt.Errorf("write an authority: %w", err)
	}
	if err := os.Rename(next, v.file); err != nil {
		return fmt.Errorf("replace an authority: %w", err)
	}
	v.serving.Store(certificate)
	return nil
}

func (v *vault) wipe() {
	if v != nil {
		_ = os.RemoveAll(filepath.Dir(v.file)) // it is in the system's folder for such
	}
}

// guard puts a listener behind TLS. Without a vault it stays as it is.
func (v *vault) guard(l net.Listener) net.Listener {
	if v == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return v.serving.Load(), nil },
	})
}

// scheme is that of the URLs of what is guarded.
func (v *vault) scheme() string {
	if v == nil {
		return "http://"
	}
	return "https://"
}

// newAuthority makes an authority, as PEM, and a certificate of it for a server on 127.0.0.1.
func newAuthority(now time.Time) ([]byte, *tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: fmt.Sprint("fakepool ", now.UnixNano())},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	if root, err = x509.ParseCertificate(raw); err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fakepool"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	block := &pem.Block{Type: "CERTIFICATE", Bytes: raw}
	return pem.EncodeToMemory(block), &tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, nil
}
