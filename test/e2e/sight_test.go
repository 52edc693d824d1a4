package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traces"
	"github.com/berthmaster/berthmaster/test/traffic"
)

// watched is a guarded system of two replicas under traffic, each of whose steps is traced and logged.
type watched struct {
	*local.System
	received *traces.Receiver
	trust    *tls.Config
	worker   string // a token that may take leases, look, and read metrics

	pool   *client.Pool
	player *traffic.Player
	enough chan struct{}
	played chan error
}

// watch brings it up and lets traffic flow until quieten.
func watch(ctx context.Context) *watched {
	GinkgoHelper()
	w := &watched{enough: make(chan struct{}), played: make(chan error, 1)}
	var err error
	w.received, err = traces.Receive(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.received.Close)
	root, err := filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	programs, err := filepath.Abs(*bin)
	Expect(err).NotTo(HaveOccurred())
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin", "k8s")
	}
	w.System, err = local.Start(ctx, local.Config{
		Root: root, Bin: programs, Assets: assets, Work: filepath.Join(root, ".cache", "e2e", "sight"),
		Engines: engines, FirstAddress: netip.MustParseAddr("127.0.0.71"), Speed: speed, Say: func(line string) { GinkgoWriter.Println(line) },
		Replicas: 2, ReplicaFlags: []string{
			"--authentication=TokenReview", "--tls=Everywhere", "--log-format=json", "--log-level=debug",
			"--trace-percent=100", "--trace-endpoint=" + w.received.Endpoint(),
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Close)
	Expect(w.ApplySample(ctx)).To(Succeed())
	Expect(w.Until(ctx, "every engine to serve", story.AllServe(engines))).To(Succeed())
	w.introduce(ctx)
	w.flow()
	return w
}

// introduce makes the worker, and finds out whom to trust.
func (w *watched) introduce(ctx context.Context) {
	GinkgoHelper()
	for _, command := range []string{
		"create serviceaccount worker",
		"create rolebinding workers --clusterrole=berthmaster-client --serviceaccount=default:worker",
		"create clusterrolebinding scrapers --clusterrole=berthmaster-metrics-reader --serviceaccount=default:worker",
	} {
		_, err := w.Kubectl().Run(ctx, strings.Fields(command)...)
		Expect(err).NotTo(HaveOccurred())
	}
	token, err := w.Kubectl().Run(ctx, "create", "token", "worker")
	Expect(err).NotTo(HaveOccurred())
	w.worker = strings.TrimSpace(token)
	var bundle string
	Eventually(func() string {
		bundle, _ = w.Kubectl().Run(ctx, "get", "configmap", "berthmaster-ca", "-o", `jsonpath={.data.ca\.crt}`)
		return bundle
	}).WithTimeout(time.Minute).Should(ContainSubstring("BEGIN CERTIFICATE"))
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM([]byte(bundle))).To(BeTrue())
	w.trust = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// poolURL is the pool behind the address of all replicas.
func (w *watched) poolURL() string { return strings.Replace(w.PoolURL(), "http://", "https://", 1) }

// client is the pool as the worker uses it, under a trace of its own if it has one.
func (w *watched) client(traceparent string) *client.Pool {
	GinkgoHelper()
	pool, err := client.New(client.Config{
		BaseURL: w.poolURL(), TLS: w.trust.Clone(),
		Token:       func(context.Context) (string, error) { return w.worker, nil },
		Traceparent: func(context.Context) string { return traceparent },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pool.Close)
	return pool
}

// flow lets sessions run until quieten.
func (w *watched) flow() {
	GinkgoHelper()
	sessions, err := workload.Limits{Sessions: 24, Turns: 6, Output: 512}.Generate(1)
	Expect(err).NotTo(HaveOccurred())
	log, err := execlog.Open(filepath.Join(w.Logs(), "clients.jsonl"), 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(log.Close)
	w.pool = w.client("")
	w.player, err = traffic.New(traffic.Config{
		Pool: w.pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Until: w.enough,
		Sender: func(i int) string { return []string{"train", "train", "train", "eval"}[i%4] },
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	go func() { w.played <- w.player.Run(ctx) }()
}

// quieten ends the traffic, in which every turn must have run to its end.
func (w *watched) quieten(ctx context.Context) {
	GinkgoHelper()
	close(w.enough)
	Eventually(ctx, w.played).WithTimeout(3 * time.Minute).Should(Receive(BeNil()))
}
