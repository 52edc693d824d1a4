package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certificateLife outlasts any run.
const certificateLife = 30 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	layout layout
	now    time.Time
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	pem    []byte
}

// subject is whom a certificate is for.
type subject struct {
	name  string // of its files
	cn    string
	group string
	hosts []string
}

// subjects are all who need a certificate.
func subjects() []subject {
	all := []subject{
		{name: "apiserver", cn: "kube-apiserver", hosts: []string{
			"127.0.0.1", hostAddress, apiServerService, "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		{name: "apiserver-kubelet", cn: "kube-apiserver-kubelet-client", group: "system:masters"},
		{name: "front-proxy", cn: "front-proxy-client"},
		{name: "admin", cn: "admin", group: "system:masters"},
		{name: "controller-manager", cn: "system:kube-controller-manager"},
		{name: "scheduler", cn: "system:kube-scheduler"},
		{name: "proxy", cn: "system:kube-proxy"},
	}
	for _, n := range nodes() {
		all = append(all, subject{
			name: n.name, cn: "system:node:" + n.name, group: "system:nodes", hosts: []string{n.name, n.address()},
		})
	}
	return all
}

// writePKI makes an authority, everybody's certificate and kubeconfig, and the key of service
// accounts' tokens.
func writePKI(l layout, now time.Time) error {
	a, err := newAuthority(l, now)
	if err != nil {
		return err
	}
	for _, s := range subjects() {
		if err := a.issue(s); err != nil {
			return fmt.Errorf("certificate of %s: %w", s.name, err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("key of service accounts: %w", err)
	}
	if err := writeKey(l.secret("accounts.key"), key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("key of service accounts: %w", err)
	}
	return os.WriteFile(l.secret("accounts.pub"), encode("PUBLIC KEY", public), 0o600)
}

func newAuthority(l layout, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sandbox"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of the authority: %w", err)
	}
	a := &authority{layout: l, now: now, cert: cert, key: key, pem: encode("CERTIFICATE", der)}
	if err := os.WriteFile(l.secret("ca.crt"), a.pem, 0o600); err != nil {
		return nil, err
	}
	return a, writeKey(l.secret("ca.key"), key)
}

// issue writes the certificate, key and kubeconfig of one subject.
func (a *authority) issue(s subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.cn},
		NotBefore: a.now.Add(-time.Hour), NotAfter: a.now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if s.group != "" {
		template.Subject.Organization = []string{s.group}
	}
	for _, host := range s.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.layout.secret(s.name+".crt"), encode("CERTIFICATE", der), 0o600); err != nil {
		return err
	}
	if err := writeKey(a.layout.secret(s.name+".key"), key); err != nil {
		return err
	}
	return a.writeKubeconfig(s.name, encode("CERTIFICATE", der), key)
}

func (a *authority) writeKubeconfig(name string, cert []byte, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString
	return os.WriteFile(a.layout.kubeconfig(name), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: %s
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: sandbox
  context: {cluster: sandbox, user: %s}
current-context: sandbox
`, apiServerURL, text(a.pem), name, text(cert), text(encode("EC PRIVATE KEY", der)), name), 0o600)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, encode("EC PRIVATE KEY", der), 0o600)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
