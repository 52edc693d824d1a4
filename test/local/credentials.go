package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// credentials are the keys and certificates of one control plane.
type credentials struct {
	dir       string
	authority []byte
	user      keyPair
}

// makeCredentials writes what the API server needs into dir.
func makeCredentials(dir string, now time.Time) (*credentials, error) {
	ca, err := newAuthority(now)
	if err != nil {
		return nil, err
	}
	server, err := ca.forServer("kube-apiserver")
	if err != nil {
		return nil, err
	}
	// The API server grants this group everything, without any binding.
	user, err := ca.forUser("local-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key for service accounts: %w", err)
	}
	tokenKey, err := encodeKey(tokens)
	if err != nil {
		return nil, err
	}
	tokenCheck, err := encodePublicKey(tokens)
	if err != nil {
		return nil, err
	}
	c := &credentials{dir: dir, authority: ca.pem(), user: user}
	return c, writeSecrets(map[string][]byte{
		c.path("ca.crt"):               c.authority,
		c.path("apiserver.crt"):        server.cert,
		c.path("apiserver.key"):        server.key,
		c.path("service-accounts.key"): tokenKey,
		c.path("service-accounts.pub"): tokenCheck,
	})
}

func (c *credentials) path(name string) string { return filepath.Join(c.dir, name) }

// admin returns how to reach the API server with every right.
func (c *credentials) admin(url string) *rest.Config {
	return &rest.Config{
		Host: url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.authority, CertData: c.user.cert, KeyData: c.user.key,
		},
		// The client's own throttle would only slow the set-up down.
		QPS: 200, Burst: 400,
	}
}

// writeKubeconfig writes a file by which kubectl, or the manager, reaches the
// API server as the given configuration does.
func writeKubeconfig(path string, c *rest.Config) error {
	const name = "local"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return nil
}
