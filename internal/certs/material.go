package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Material is a certificate to show, and whom to trust in others that show one of the same kind.
type Material struct {
	Certificate tls.Certificate
	// Bundle are the authorities, as PEM; empty: those of the system.
	Bundle []byte
	roots  *x509.CertPool // nil: those of the system
}

// errNoAuthority: a bundle holds no certificate.
var errNoAuthority = errors.New("there is no certificate in the bundle of authorities")

// newMaterial reads certificate, key and bundle from PEM.
func newMaterial(certificate, key, bundle []byte) (*Material, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	m := &Material{Certificate: pair, Bundle: bundle}
	if len(bundle) == 0 {
		return m, nil
	}
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM(bundle) {
		return nil, errNoAuthority
	}
	return m, nil
}

// Holder holds the material in use. It is safe for concurrent use.
type Holder struct{ now atomic.Pointer[Material] }

// Use takes other material into use for every connection from now on.
func (h *Holder) Use(m *Material) { h.now.Store(m) }

// Bundle is what clients trust, as PEM; empty: nothing is known.
func (h *Holder) Bundle() []byte {
	if m := h.now.Load(); m != nil {
		return m.Bundle
	}
	return nil
}

// errNone: a connection came before there was a certificate.
var errNone = errors.New("there is no certificate yet")

// Server is how a port is served: TLS 1.2 or later, with forward secrecy and authenticated encryption, over
// HTTP/1.1 only, so that limits of connections are limits of calls.
func (h *Holder) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, CipherSuites: suites(), NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			m := h.now.Load()
			if m == nil {
				return nil, errNone
			}
			return &m.Certificate, nil
		},
	}
}

// suites are those of TLS 1.2; those of 1.3 are all of this kind.
func suites() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// dialTime bounds a connection attempt to a neighbour.
const dialTime = 5 * time.Second

// Dial connects to neighbours, whatever their address, if they show a certificate of that name.
func (h *Holder) Dial(name string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		m := h.now.Load()
		if m == nil {
			return nil, errNone
		}
		dialer := tls.Dialer{
			NetDialer: &net.Dialer{Timeout: dialTime},
			Config:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: m.roots, ServerName: name, NextProtos: []string{"http/1.1"}},
		}
		return dialer.DialContext(ctx, network, address)
	}
}
