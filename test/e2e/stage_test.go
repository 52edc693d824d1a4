package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/desk"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
)

// stage is a real pool on which the main scenarios of the conformance table are played, one after the
// other: the manager, an API server, and simulated engines.
type stage struct {
	system *local.System
	// spoiled: the pool has changed for good, and another has to take its place.
	spoiled bool
	http    *http.Client
}

// manifest is the pool, with one sender, in the epoch of every scenario. Leases are short, so that renewals
// are seen, and engines small, so that one execution which was cut is reason enough to make sure of it.
var manifest = fmt.Sprintf(`apiVersion: inference.berthmaster.io/v1alpha1
kind: InferencePool
metadata: {name: policy, namespace: default}
spec:
  backends: {selector: {matchLabels: {app: sglang, role: rollout}}, port: 30000, capacity: {source: Fixed, value: 8}}
  leases: {ttlSeconds: 30, startSeconds: 5}
  senders: [{name: %s}]
  epoch: %d
`, conformance.Sender, conformance.Epoch)

// asBefore takes back what scenarios that leave the pool sound change in its spec.
var asBefore = fmt.Sprintf(`{"spec":{"leasing":"Open","drain":null,"senders":[{"name":%q,"access":"Open"}]}}`, conformance.Sender)

// openStage brings a system up whose engines say what those of the scenarios do.
func openStage(ctx context.Context, name string, first netip.Addr) *stage {
	GinkgoHelper()
	root, err := filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	programs, err := filepath.Abs(*bin)
	Expect(err).NotTo(HaveOccurred())
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin", "k8s")
	}
	system, err := local.Start(ctx, local.Config{
		Root: root, Bin: programs, Assets: assets, Work: filepath.Join(root, ".cache", "e2e", name),
		Engines: 2, FirstAddress: first, Speed: speed, EngineFlags: []string{"--weight-version=v7"},
		Replicas: 1, Say: func(line string) { GinkgoWriter.Println(line) },
	})
	Expect(err).NotTo(HaveOccurred(), "\"make build bin/k8s\" makes what is missing")
	DeferCleanup(system.Close)
	s := &stage{system: system, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}}
	Expect(s.newPool(ctx)).To(Succeed())
	return s
}

func (s *stage) newPool(ctx context.Context) error {
	_, err := s.system.Kubectl().Apply(ctx, manifest, "--server-side")
	return err
}

// patch merges into the pool, and waits until its status is of that generation.
func (s *stage) patch(ctx context.Context, patch string) error {
	_, err := s.system.Kubectl().Run(ctx, "patch", "inferencepools.inference.berthmaster.io", "policy", "--type=merge", "-p", patch)
	if err != nil {
		return err
	}
	return s.system.Until(ctx, "the status to be of the spec", func(p *v1alpha1.InferencePool) error {
		if p.Status.ObservedGeneration < p.Generation {
			return errNotYet
		}
		return nil
	})
}

// begin brings the pool to where a scenario begins.
func (s *stage) begin(ctx context.Context, scenario conformance.Scenario) (desk.Run, error) {
	if err := s.clean(ctx); err != nil {
		return nil, fmt.Errorf("clean the stage: %w", err)
	}
	s.spoiled = scenario.Main.Leaves == conformance.Spoiled
	if scenario.Main.Spec != nil {
		spec, err := json.Marshal(map[string]any{"spec": scenario.Main.Spec})
		if err != nil {
			return nil, err
		}
		if err := s.patch(ctx, string(spec)); err != nil {
			return nil, err
		}
	}
	if faults := scenario.Main.Faults; len(faults) > 0 {
		if err := s.engines(ctx, http.MethodPost, "/sim/faults", faults); err != nil {
			return nil, err
		}
	}
	return newRun(s, scenario), nil
}

// clean takes back what the scenario before has done.
func (s *stage) clean(ctx context.Context) error {
	if err := s.engines(ctx, http.MethodDelete, "/sim/faults", nil); err != nil {
		return err
	}
	if s.spoiled {
		if err := s.system.DeletePool(ctx); err != nil {
			return err
		}
		if err := s.newPool(ctx); err != nil {
			return err
		}
	} else if err := s.patch(ctx, asBefore); err != nil {
		return err
	}
	return s.system.Until(ctx, "every engine to serve", story.AllServe(len(s.system.EngineNames())))
}

// engines makes a call at each engine that runs.
func (s *stage) engines(ctx context.Context, method, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for _, url := range s.system.EngineURLs() {
		r, err := http.NewRequestWithContext(ctx, method, url+path, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		if err := s.call(r, nil); err != nil {
			return err
		}
	}
	return nil
}

// errRefused: a call was answered otherwise than well.
var errRefused = errors.New("refused")

// call makes a call and reads its answer.
func (s *stage) call(r *http.Request, into any) error {
	r.Header.Set("Content-Type", "application/json")
	reply, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if reply.StatusCode > 299 {
		return fmt.Errorf("%s %s: %w: %s: %s", r.Method, r.URL, errRefused, reply.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// get asks the router something about the pool.
func (s *stage) get(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.system.PoolURL()+path, nil)
	if err != nil {
		return err
	}
	return s.call(r, into)
}
