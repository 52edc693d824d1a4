package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// CALife is how long an authority is valid.
	CALife = 5 * 365 * 24 * time.Hour
	// LeafLife is how long a serving certificate is valid.
	LeafLife = 90 * 24 * time.Hour
	// Overlap is how long an authority is published before it signs.
	Overlap = 30 * 24 * time.Hour
	// backdate allows for clocks of clients that are behind.
	backdate = 5 * time.Minute
)

// signer is a certificate with its key.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// errKeyPair is a certificate or key that cannot be read; it says nothing of either.
var errKeyPair = errors.New("not a certificate and its key")

// parseSigner reads a certificate and its key from PEM.
func parseSigner(certificate, key []byte) (*signer, error) {
	block, _ := pem.Decode(certificate)
	secret, _ := pem.Decode(key)
	if block == nil || secret == nil {
		return nil, errKeyPair
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errKeyPair
	}
	private, err := x509.ParsePKCS8PrivateKey(secret.Bytes)
	own, ok := private.(*ecdsa.PrivateKey)
	if err != nil || !ok || !own.PublicKey.Equal(parsed.PublicKey) {
		return nil, errKeyPair
	}
	return &signer{parsed, own}, nil
}

// encode is the signer as PEM.
func (s *signer) encode() (certificate, key []byte, err error) {
	raw, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), nil
}

// aged reports whether two thirds of the certificate's life are over, or it has not begun.
func (s *signer) aged(now time.Time) bool {
	c := s.certificate
	return now.Before(c.NotBefore) || !now.Before(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)/3*2))
}

// serves reports whether the certificate is for exactly these names.
func (s *signer) serves(names []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(s.certificate.DNSNames)), slices.Sorted(slices.Values(names)))
}

// permits reports whether the authority may sign for these names.
func (s *signer) permits(names []string) bool {
	for _, name := range names {
		if !slices.Contains(s.certificate.PermittedDNSDomains, name) {
			return false
		}
	}
	return true
}

// loopbackNets are the addresses that an authority may sign for, for clients on the manager's own host.
func loopbackNets() []*net.IPNet {
	return []*net.IPNet{
		{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
		{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
	}
}

// newAuthority makes an authority for these names and no other.
func newAuthority(names []string, now time.Time) (*signer, error) {
	return issue(nil, &x509.Certificate{
		Subject:   pkix.Name{CommonName: "berthmaster authority of " + now.UTC().Format(time.DateOnly)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(CALife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names, PermittedIPRanges: loopbackNets(),
	})
}

// newLeaf makes a serving certificate.
func (s *signer) newLeaf(names []string, now time.Time) (*signer, error) {
	return issue(s, &x509.Certificate{
		Subject:   pkix.Name{CommonName: "berthmaster"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(LeafLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback},
	})
}

// issue signs a certificate for a new key; by nil: that key signs itself.
func issue(by *signer, template *x509.Certificate) (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	parent, signing := template, crypto.Signer(key)
	if by != nil {
		parent, signing = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signing)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &signer{made, key}, nil
}
