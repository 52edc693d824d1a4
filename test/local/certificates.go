package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certificateLife outlasts any run of the local system by far.
const certificateLife = 30 * 24 * time.Hour

// authority signs the certificates of one control plane.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	now  time.Time
	last int64 // serial number given out last
}

// keyPair is a certificate and its private key, PEM encoded.
type keyPair struct {
	cert, key []byte
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	a := &authority{key: key, now: now}
	template := a.template(pkix.Name{CommonName: "berthmaster local authority"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("certificate of the authority: %w", err)
	}
	return a, nil
}

// forServer signs a certificate for a server on 127.0.0.1.
func (a *authority) forServer(name string) (keyPair, error) {
	template := a.template(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost"}
	return a.sign(template)
}

// forUser signs a certificate by which the API server knows a user.
func (a *authority) forUser(name string, groups ...string) (keyPair, error) {
	template := a.template(pkix.Name{CommonName: name, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func (a *authority) template(subject pkix.Name) *x509.Certificate {
	a.last++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.last),
		Subject:      subject,
		// A clock that was set back a little must not invalidate it.
		NotBefore: a.now.Add(-time.Hour),
		NotAfter:  a.now.Add(certificateLife),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("key for %s: %w", template.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("certificate for %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: encodeCertificate(der), key: keyPEM}, nil
}

// pem returns the authority's own certificate.
func (a *authority) pem() []byte { return encodeCertificate(a.cert.Raw) }

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func encodePublicKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// writeSecrets writes files that only their owner may read.
func writeSecrets(files map[string][]byte) error {
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
	}
	return nil
}
