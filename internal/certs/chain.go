package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"time"
)

// The keys of the Secret.
const (
	caCert, caKey     = "ca.crt", "ca.key"
	nextCert, nextKey = "next-ca.crt", "next-ca.key"
	previousCert      = "previous-ca.crt"
	leafCert, leafKey = "tls.crt", "tls.key"
)

// chain is what the Secret holds, key by key, as PEM.
type chain map[string][]byte

// next is the chain that ought to be there now: the same, if nothing is due.
func (c chain) next(names []string, now time.Time) (chain, error) {
	out := maps.Clone(c)
	if out == nil {
		out = chain{}
	}
	for _, step := range []func([]string, time.Time) error{out.renewAuthority, out.prepareSuccessor, out.succeed, out.renewLeaf} {
		if err := step(names, now); err != nil {
			return nil, err
		}
	}
	out.forget(now)
	return out, nil
}

func (c chain) signer(certificate, key string) *signer {
	s, err := parseSigner(c[certificate], c[key])
	if err != nil {
		return nil // it is replaced
	}
	return s
}

func (c chain) put(certificate, key string, s *signer) error {
	var err error
	c[certificate], c[key], err = s.encode()
	return err
}

// renewAuthority makes an authority at once where there is none that can sign: at the beginning, after
// nobody ran for years, or under other names.
func (c chain) renewAuthority(names []string, now time.Time) error {
	ca := c.signer(caCert, caKey)
	if ca != nil && ca.permits(names) && !now.Before(ca.certificate.NotBefore) && now.Before(ca.certificate.NotAfter.Add(-LeafLife)) {
		return nil
	}
	made, err := newAuthority(names, now)
	if err != nil {
		return err
	}
	if ca != nil {
		c[previousCert] = c[caCert]
	}
	delete(c, nextCert)
	delete(c, nextKey)
	return c.put(caCert, caKey, made)
}

// prepareSuccessor makes the authority that will sign next.
func (c chain) prepareSuccessor(names []string, now time.Time) error {
	if !c.signer(caCert, caKey).aged(now) || c.signer(nextCert, nextKey) != nil {
		return nil
	}
	made, err := newAuthority(names, now)
	if err != nil {
		return err
	}
	return c.put(nextCert, nextKey, made)
}

// succeed lets the successor sign once it has been published for long enough.
func (c chain) succeed(names []string, now time.Time) error {
	s := c.signer(nextCert, nextKey)
	if s == nil || now.Before(s.certificate.NotBefore.Add(backdate+Overlap)) {
		return nil
	}
	if !s.permits(names) {
		delete(c, nextCert)
		delete(c, nextKey)
		return c.prepareSuccessor(names, now)
	}
	c[previousCert], c[caCert], c[caKey] = c[caCert], c[nextCert], c[nextKey]
	delete(c, nextCert)
	delete(c, nextKey)
	return nil
}

// renewLeaf replaces a serving certificate that is old, for other names, or of another authority.
func (c chain) renewLeaf(names []string, now time.Time) error {
	ca, leaf := c.signer(caCert, caKey), c.signer(leafCert, leafKey)
	if leaf != nil && !leaf.aged(now) && leaf.serves(names) && leaf.certificate.CheckSignatureFrom(ca.certificate) == nil {
		return nil
	}
	made, err := ca.newLeaf(names, now)
	if err != nil {
		return err
	}
	return c.put(leafCert, leafKey, made)
}

// forget drops a predecessor that has expired.
func (c chain) forget(now time.Time) {
	block, _ := pem.Decode(c[previousCert])
	if block == nil {
		delete(c, previousCert)
		return
	}
	if old, err := x509.ParseCertificate(block.Bytes); err != nil || now.After(old.NotAfter) {
		delete(c, previousCert)
	}
}

// bundle is every authority that clients trust.
func (c chain) bundle() []byte {
	return bytes.Join([][]byte{c[caCert], c[nextCert], c[previousCert]}, nil)
}

// same reports whether two chains hold the same.
func (c chain) same(other chain) bool { return maps.EqualFunc(c, other, bytes.Equal) }

// material is what the ports use.
func (c chain) material() (*Material, error) {
	return newMaterial(c[leafCert], c[leafKey], c.bundle())
}
