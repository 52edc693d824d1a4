package connect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

func TestATokenCrossesNoNetworkInTheClear(t *testing.T) {
	config := &rest.Config{BearerToken: "mine"}
	for url, refused := range map[string]bool{
		"http://127.0.0.1:8085": false, "http://[::1]:8085": false, "http://localhost:8085": false,
		"https://router.example": false, "http://router.example": true, "http://10.0.0.7:8085": true,
	} {
		_, closing, err := Router{Config: config, URL: url}.Open(t.Context(), "rl", "policy")
		if errors.Is(err, ErrPlain) != refused {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil {
			closing()
		}
	}
	if _, _, err := (Router{Config: &rest.Config{}, URL: "http://10.0.0.7:8085"}).Open(t.Context(), "rl", "policy"); err != nil {
		t.Errorf("without a token: %v", err)
	}
}

func TestTheUsersTokenIsShownAndNoCertificate(t *testing.T) {
	var shown string
	router := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusTeapot)
	}))
	defer router.Close()
	config := &rest.Config{BearerToken: "mine", TLSClientConfig: rest.TLSClientConfig{CertFile: "none", KeyFile: "none"}}
	c, closing, err := Router{Config: config, URL: router.URL + "/"}.Open(t.Context(), "rl", "policy")
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	if _, err := c.Pool(t.Context()); err == nil || !strings.Contains(err.Error(), "no Berthmaster router") {
		t.Errorf("error %v", err)
	}
	if shown != "Bearer mine" {
		t.Errorf("shown %q", shown)
	}
}

func TestTheManagersPortAndSchemeAreReadOffItsPod(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		ports     []corev1.ContainerPort
		want      manager
	}{
		"on loopback":                 {[]string{"--lease-bind-address=127.0.0.1:8085"}, nil, manager{"m", 8085, "http"}},
		"beyond loopback":             {[]string{"--lease-bind-address=:8085"}, nil, manager{"m", 8085, "https"}},
		"on loopback, TLS everywhere": {[]string{"--lease-bind-address=127.0.0.1:8085", "--tls=Everywhere"}, nil, manager{"m", 8085, "https"}},
		"by default":                  {nil, nil, manager{"m", 8085, "http"}},
		"on a port of another number": {[]string{"-lease-bind-address=0.0.0.0:9000"}, []corev1.ContainerPort{{Name: "health", ContainerPort: 1}, {Name: "leases", ContainerPort: 9000}}, manager{"m", 9000, "https"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: c.arguments, Ports: c.ports}}}}
			if got := managerIn(pod); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheRouterIsTrustedByWhatTheManagerPublishes(t *testing.T) {
	certificate, bundle := authority(t, "berthmaster-leases.berthmaster-system.svc")
	stranger, _ := authority(t, "berthmaster-leases.berthmaster-system.svc")
	published := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "berthmaster-ca", Namespace: "rl"}, Data: map[string]string{"ca.crt": bundle},
	})
	for name, c := range map[string]struct {
		shows  tls.Certificate
		trusts bool
	}{"the manager's certificate": {certificate, true}, "a stranger's": {stranger, false}} {
		t.Run(name, func(t *testing.T) {
			wire, err := Trust{}.published(t.Context(), published, "berthmaster-system", "rl")
			if err != nil {
				t.Fatal(err)
			}
			defer wire.CloseIdleConnections()
			if err := ask(t, wire, c.shows); (err == nil) != c.trusts {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := (Trust{}).published(t.Context(), fake.NewClientset(), "berthmaster-system", "rl"); err == nil || !strings.Contains(err.Error(), "--router-ca-file") {
		t.Errorf("nothing is published: %v", err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(bundle), 0o600); err != nil {
		t.Fatal(err)
	}
	wire, err := Trust{CAFile: file}.published(t.Context(), fake.NewClientset(), "berthmaster-system", "rl")
	if err != nil {
		t.Fatal(err)
	}
	defer wire.CloseIdleConnections()
	if err := ask(t, wire, certificate); err != nil {
		t.Errorf("by a file: %v", err)
	}
}

// ask makes a call to a router that shows a certificate.
func ask(t *testing.T, wire *http.Transport, shows tls.Certificate) error {
	t.Helper()
	router := httptest.NewUnstartedServer(http.NotFoundHandler())
	router.TLS = &tls.Config{Certificates: []tls.Certificate{shows}}
	router.Config.ErrorLog = nil
	router.StartTLS()
	defer router.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, router.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := wire.RoundTrip(req)
	if err == nil {
		reply.Body.Close()
	}
	return err
}

// authority makes a certificate for a name, signed by itself, and its PEM.
func authority(t *testing.T, name string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// answers is a way that answers, or does not.
type answers struct {
	err   error
	asked int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestThePortForwardIsTakenOnlyWhereNothingWasSent(t *testing.T) {
	unreachable := &net.OpError{Op: "dial", Err: errors.New("no route to host")}
	for name, c := range map[string]struct {
		direct  error
		forward error
		asked   int
		works   bool
	}{
		"it is reached directly":       {nil, nil, 0, true},
		"it cannot be dialled":         {unreachable, nil, 1, true},
		"the connection broke halfway": {errors.New("unexpected EOF"), nil, 0, false},
		"neither way leads there":      {unreachable, errors.New("forbidden"), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			direct, forward := &answers{err: c.direct}, &answers{err: c.forward}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.0.0.7:30000/server_info", nil)
			if err != nil {
				t.Fatal(err)
			}
			reply, err := FirstOf{Direct: direct, Forward: forward}.RoundTrip(req)
			if err == nil {
				reply.Body.Close()
			}
			if forward.asked != c.asked || (err == nil) != c.works {
				t.Errorf("the port-forward was asked %d times: %v", forward.asked, err)
			}
			if c.forward != nil && (!errors.Is(err, c.direct) || !errors.Is(err, c.forward)) {
				t.Errorf("%v does not tell both reasons", err)
			}
		})
	}
}
