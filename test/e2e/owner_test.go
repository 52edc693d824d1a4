package e2e

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
	"github.com/berthmaster/berthmaster/test/traffic"
	"github.com/berthmaster/berthmaster/test/verdict"
)

var _ = Describe("the owner of a pool under traffic", Ordered, func() {
	var (
		system  *local.System
		flow    *flowing
		telling *story.Story
		drained string
		killed  string
	)

	BeforeAll(func() {
		system = start("owner")
		names := system.EngineNames()
		drained, killed = names[1], names[len(names)-1]
		flow = letFlow(system)
		telling = &story.Story{
			System: system, Traffic: flow.player, Now: time.Now,
			Say: func(line string) { GinkgoWriter.Println(line) },
		}
		Expect(telling.Begin(flow.ctx)).To(Succeed())
	})

	It("drains a backend, sees it drained, and takes it back", func(ctx SpecContext) {
		Expect(flow.player.AwaitDone(ctx, 50)).To(Succeed())
		Expect(telling.Drain(ctx, drained)).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("fences a sender while the other goes on, and opens it again", func(ctx SpecContext) {
		Expect(telling.Fence(ctx, "eval", "train")).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("loses an engine to a crash and keeps the pool", func(ctx SpecContext) {
		Expect(telling.Crash(ctx, killed)).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("finds every count at zero when the sessions have ended", func(ctx SpecContext) {
		Expect(flow.end()).To(Succeed())
		Expect(system.UntilNothingCounted(ctx)).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("finds no fault in the engines' own records", func() {
		system.Close()
		Expect(flow.run(system, telling, drained, killed).Faults()).To(BeEmpty())
	})

	It("leaves no process behind", func() {
		Expect(system.Running()).To(BeEmpty())
	})
})

// flowing is traffic that goes on until it is told to end.
type flowing struct {
	ctx    context.Context
	player *traffic.Player
	log    string
	// end lets the sessions come to their end and returns what went wrong.
	end func() error
}

func letFlow(system *local.System) *flowing {
	GinkgoHelper()
	sessions, err := workload.Limits{Sessions: 64, Turns: 8, Output: 1024}.Generate(1)
	Expect(err).NotTo(HaveOccurred())
	pool, err := client.New(client.Config{BaseURL: system.PoolURL()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pool.Close)
	f := &flowing{log: filepath.Join(filepath.Dir(system.Logs()), "clients.jsonl")}
	log, err := execlog.Open(f.log, 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(log.Close)
	enough := make(chan struct{})
	f.player, err = traffic.New(traffic.Config{
		Pool: pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Until: enough,
		Sender: func(i int) string {
			if i%4 == 3 {
				return "eval"
			}
			return "train"
		},
	})
	Expect(err).NotTo(HaveOccurred())
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithCancel(context.Background())
	played := make(chan error, 1)
	go func() { played <- f.player.Run(f.ctx) }()
	DeferCleanup(cancel)
	f.end = func() error { close(enough); return <-played }
	return f
}

// run is what engines and clients wrote down.
func (f *flowing) run(system *local.System, told *story.Story, disturbed ...string) verdict.Run {
	GinkgoHelper()
	engines, err := execlog.ReadFiles(system.ExecutionLogs())
	Expect(err).NotTo(HaveOccurred())
	clients, err := execlog.ReadClientFiles(f.log)
	Expect(err).NotTo(HaveOccurred())
	run := verdict.Run{
		Engines: engines, Clients: clients, Disturbed: disturbed, Quiet: told.Quiet(), Senders: map[string]string{},
	}
	for _, session := range f.player.Sessions() {
		run.Sessions = append(run.Sessions, session.Session)
		run.Senders[session.ID] = session.Sender
	}
	Expect(run.Sessions).NotTo(BeEmpty())
	return run
}
