package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traffic"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// scene is what happens in one story while sessions run.
type scene struct {
	*house
	began     time.Time
	prefix    string // of the story's sessions
	caller    *caller
	player    *traffic.Player
	history   *history
	disturbed []string
	quiet     []verdict.Quiet
	enough    func() // lets no session be followed by another
	played    chan error
	mixed     atomic.Int64     // turns that crossed a change of weights
	before    map[string]usage // the story, by replica of the operator
}

// tell makes a spec of a story: traffic begins, happens happens, traffic ends, and the judge is asked.
func (h *house) tell(what string, happens func(ctx context.Context, s *scene)) {
	It(what, func(ctx SpecContext) {
		s := h.begin(ctx)
		happens(ctx, s)
		s.end(ctx)
	}, SpecTimeout(12*time.Minute))
}

// begin waits for every engine to serve and lets sessions flow.
func (h *house) begin(ctx SpecContext) *scene {
	GinkgoHelper()
	h.settle(ctx)
	h.untilAllServe(ctx, engines)
	// What the story before has taken away may still be going.
	Eventually(ctx, h.enginePods).Should(HaveLen(engines))
	h.stories++
	s := &scene{
		house: h, began: time.Now(), before: h.usages(ctx), prefix: fmt.Sprintf("run%d-story%d-", h.began.UnixMilli(), h.stories),
		played: make(chan error, 1),
	}
	enough := make(chan struct{})
	s.enough = sync.OnceFunc(func() { close(enough) })
	s.caller = h.newCaller(ctx)
	sessions, err := workload.Limits{Sessions: 32, Turns: 6, Output: 768}.Generate(uint64(h.stories))
	Expect(err).NotTo(HaveOccurred())
	for i := range sessions {
		sessions[i].ID = s.prefix + sessions[i].ID
		sessions[i].Group = ""
	}
	pool, err := client.New(s.caller.config())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pool.Close)
	log, err := execlog.Open(s.clientLog(), 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(log.Close)
	s.player, err = traffic.New(traffic.Config{
		Pool: pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Until: enough, Sender: senderOf,
		Each: func(_ string, r *client.Result) {
			if r.Mixed {
				s.mixed.Add(1)
			}
		},
	})
	Expect(err).NotTo(HaveOccurred())
	// The story's own context ends before its sessions may be cut off.
	flow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.history = h.record(flow)
	ended := make(chan struct{})
	go func() { defer close(ended); s.played <- s.player.Run(flow) }()
	// A story that fails leaves its sessions no reason to be counted in the next.
	DeferCleanup(func(ctx SpecContext) {
		defer cancel()
		s.enough()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}, NodeTimeout(90*time.Second))
	s.goesOn(ctx, 40)
	return s
}

func senderOf(i int) string {
	if i%4 == 3 {
		return "eval"
	}
	return "train"
}

func (s *scene) clientLog() string { return filepath.Join(s.clients(), s.prefix+"clients.jsonl") }

// goesOn waits until so many further turns have run to their end.
func (s *scene) goesOn(ctx context.Context, turns int) {
	GinkgoHelper()
	err := s.player.AwaitDone(ctx, s.player.Counts("").Done+turns)
	if errors.Is(err, traffic.ErrEnded) {
		err = errors.Join(err, <-s.played) // which says why
	}
	Expect(err).NotTo(HaveOccurred())
}

// leaves names backends that sessions may leave in this story.
func (s *scene) leaves(backends ...string) { s.disturbed = append(s.disturbed, backends...) }

// end lets the sessions end and judges the story.
func (s *scene) end(ctx context.Context) {
	GinkgoHelper()
	used := s.used(ctx, s.before)
	s.enough()
	Eventually(ctx, s.played).WithTimeout(5 * time.Minute).Should(Receive(BeNil()))
	s.untilNothingCounted(ctx)
	faults := s.run().Faults()
	Expect(faults).To(BeEmpty(), "the judge found fault with what the engines wrote down")
	pool, err := s.pool(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(pool.Status.Failure).To(BeNil())
	events, err := s.events(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(events).NotTo(ContainElement(HaveField("Reason", "PoolFailed")))
	AddReportEntry("events", brief(events))
	AddReportEntry("operator", used)
	counts := s.player.Counts("")
	AddReportEntry("turns", fmt.Sprintf("%d turns in %d sessions, %d of them made again", counts.Done, counts.Ended, counts.Again))
}

// run is what engines and clients wrote down about this story.
func (s *scene) run() verdict.Run {
	GinkgoHelper()
	everything, err := execlog.ReadFiles(s.executions())
	Expect(err).NotTo(HaveOccurred())
	clients, err := execlog.ReadClientFiles(s.clientLog())
	Expect(err).NotTo(HaveOccurred())
	run := verdict.Run{
		// On a machine that is very busy a healthy engine fails its probes, or the kubelet's. Then the status has
		// to say so.
		Clients: clients, Disturbed: append(s.history.shunned(), s.disturbed...), Quiet: s.quiet, Senders: map[string]string{},
		Engines: slices.DeleteFunc(everything, func(r execlog.Record) bool { return !strings.HasPrefix(r.Session, s.prefix) }),
	}
	for _, session := range s.player.Sessions() {
		run.Sessions = append(run.Sessions, session.Session)
		run.Senders[session.ID] = session.Sender
	}
	Expect(run.Sessions).NotTo(BeEmpty())
	return run
}

// untilAllServe waits until so many backends serve, and no other is listed.
func (h *house) untilAllServe(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		pool, err := h.pool(ctx)
		if err != nil {
			return err
		}
		return story.AllServe(n)(pool)
	}).Should(Succeed())
}

// untilNothingCounted waits until every count of the router is zero. What an earlier term may have left
// stays unknown until somebody asks: fencing both senders asks.
func (s *scene) untilNothingCounted(ctx context.Context) {
	GinkgoHelper()
	var unknown bool
	Eventually(ctx, func(ctx context.Context) error {
		live, err := s.caller.live(ctx)
		if err != nil {
			return err
		}
		unknown = live.Forget()
		return live.Counted()
	}).Should(Succeed())
	if !unknown {
		return
	}
	s.fence(ctx, "Fenced")
	Eventually(ctx, func(ctx context.Context) error {
		live, err := s.caller.live(ctx)
		if err != nil {
			return err
		}
		return live.Counted()
	}).Should(Succeed())
	s.fence(ctx, "Open")
}

// fence shuts both senders out, or lets them in, and waits until the status says so.
func (s *scene) fence(ctx context.Context, access v1alpha1.SenderAccess) {
	GinkgoHelper()
	s.apply(ctx, fmt.Sprintf(`apiVersion: %s
kind: InferencePool
metadata: {name: %s, namespace: %s}
spec: {senders: [{name: train, access: %s}, {name: eval, access: %s}]}
`, v1alpha1.GroupVersion, poolName, poolNamespace, access, access),
		"--server-side", "--force-conflicts", "--field-manager=stories")
	Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
		pool, err := s.pool(ctx)
		if err != nil {
			return nil, err
		}
		found := map[string]string{}
		for _, sender := range pool.Status.Senders {
			found[sender.Name] = string(sender.Access)
		}
		return found, nil
	}).Should(Equal(map[string]string{"train": string(access), "eval": string(access)}))
}

// names are a set's members in their order.
func names[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }
