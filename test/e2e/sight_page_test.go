package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/test/page/browser"
	"github.com/berthmaster/berthmaster/test/rollouts"
)

// album is where what was seen of the page is kept.
const album = "../../.cache/page"

// onlooker is a person with a browser.
type onlooker struct {
	*browser.Browser
	ctx context.Context
}

// newOnlooker starts a browser, which here need not know who signed the manager's certificate; a machine
// without one leaves the spec out.
func newOnlooker(ctx context.Context) *onlooker {
	GinkgoHelper()
	Expect(os.MkdirAll(album, 0o750)).To(Succeed())
	b, err := browser.Start(ctx, GinkgoT().TempDir())
	if errors.Is(err, browser.ErrMissing) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	o := &onlooker{b, ctx}
	o.must(b.Call(ctx, "Security.setIgnoreCertificateErrors", map[string]any{"ignore": true}, nil))
	o.must(b.Screen(ctx, browser.Shape{Width: 1280, Height: 900, Scale: 1}))
	return o
}

func (o *onlooker) must(err error) {
	GinkgoHelper()
	if err != nil {
		_ = o.Picture(o.ctx, filepath.Join(album, "failed.png"))
	}
	Expect(err).NotTo(HaveOccurred())
}

// sees waits until an expression is true.
func (o *onlooker) sees(expression string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(o.ctx, time.Minute)
	defer cancel()
	o.must(o.Until(ctx, expression))
}

// reads waits until an element says something.
func (o *onlooker) reads(selector, text string) {
	GinkgoHelper()
	o.sees(fmt.Sprintf("document.querySelector(%s)?.textContent.includes(%s)", strconv.Quote(selector), strconv.Quote(text)))
}

func (o *onlooker) keeps(name string) {
	GinkgoHelper()
	o.must(o.Eval(o.ctx, `scrollTo(0, 0)`, nil))
	o.must(o.Eval(o.ctx, `Promise.allSettled(document.getAnimations().map((a) => a.finished)).then(() => true)`, nil))
	o.must(o.Picture(o.ctx, filepath.Join(album, name+".png")))
}

// types writes into a field and presses Enter.
func (o *onlooker) types(selector, text string) {
	GinkgoHelper()
	o.must(o.Eval(o.ctx, "(() => { const e = document.querySelector("+strconv.Quote(selector)+"); e.focus(); e.select(); })()", nil))
	o.must(o.Type(o.ctx, text))
	o.must(o.Press(o.ctx, "Enter"))
}

// clickThrough is a person's tour of the page of a follower, while the demo's kinds of things happen.
func clickThrough(ctx context.Context, w *watched) {
	GinkgoHelper()
	leader, err := w.Leader(ctx)
	Expect(err).NotTo(HaveOccurred())
	follower := w.Replicas()[0]
	if follower == leader {
		follower = w.Replicas()[1]
	}
	Expect(w.Drain(ctx, "sglang-2")).To(Succeed())
	Expect(w.Until(ctx, "sglang-2 to drain", func(p *v1alpha1.InferencePool) error {
		for _, b := range p.Status.Backends {
			if b.Name == "sglang-2" && (b.State == v1alpha1.BackendDraining || b.State == v1alpha1.BackendDrained) {
				return nil
			}
		}
		return errNotYet
	})).To(Succeed())
	o := newOnlooker(ctx)
	o.must(o.Call(ctx, "Page.navigate", map[string]any{"url": "https://" + follower.Leases + "/"}, nil))
	o.sees(`document.querySelector("#login")?.open`)
	o.types("#token", "made-up")
	o.reads("#login-why", "not enough")
	o.sees(`document.querySelectorAll(".cell").length === 0`)
	o.types("#token", w.worker)
	o.sees(`document.querySelectorAll("#strip .cell").length === ` + strconv.Itoa(engines))
	o.reads("#name", "policy")
	o.reads("#link", "Live")
	o.sees(`now.history.length > 8 && now.state.sessions > 4 && now.state.backends.some((b) => b.outstanding > 0)`)
	o.reads("#events", "sglang-2 is drain") // which was before the page was opened
	Expect(w.Undrain(ctx, "sglang-2")).To(Succeed())
	o.reads("#events", "sglang-2 takes new sessions again")
	o.keeps("1-traffic")

	Expect(w.Drain(ctx, "sglang-3")).To(Succeed())
	o.reads("#attention", "sglang-3 is drain")
	o.reads("#events", "sglang-3 is drain")
	Expect(w.SetAccess(ctx, "eval", v1alpha1.SenderFenced)).To(Succeed())
	o.reads("#senders", "Fenc")
	o.reads("#events", "Sender eval is fenced")
	o.explains(ctx, w)
	o.keeps("2-drain-and-fence")
	o.changesLooks()
	Expect(w.Undrain(ctx, "sglang-3")).To(Succeed())
	Expect(w.SetAccess(ctx, "eval", v1alpha1.SenderOpen)).To(Succeed())
	o.reads("#events", "sglang-3 takes new sessions again")
	o.reads("#events", "Sender eval is open")

	Expect(rollouts.Ask(ctx, w.System, rollouts.Change{Version: "step-1", Strategy: "Rolling"})).To(Succeed())
	o.reads("#rollout", "step-1")
	o.reads("#events", "Version step-1 is published")
	o.reads("#rollout", "All "+strconv.Itoa(engines)+" backends on step-1")

	leader.Quit(ctx)
	o.reads("#badges", "term 2")
	o.reads("#events", "Another router took over: term 2")
	o.reads("#events", "Sender eval is fenced") // what was seen stays
	o.reads("#link", "Live")
	o.sees(`now.state.backends.some((b) => b.outstanding > 0)`)
	o.keeps("5-take-over")
	for _, untrue := range []string{"joined", "Epoch"} { // engines and epoch are what they were
		o.sees(fmt.Sprintf("!document.querySelector('#events').textContent.includes(%q)", untrue))
	}
	o.complainsOfNothing()
	another, err := w.StartReplica(ctx, "--authentication=TokenReview", "--tls=Everywhere", "--log-level=debug")
	Expect(err).NotTo(HaveOccurred())
	Expect(w.UntilReady(ctx, another)).To(Succeed())
}

// changesLooks goes from light to dark, and to a phone, on which nothing may have to be scrolled sideways.
func (o *onlooker) changesLooks() {
	GinkgoHelper()
	ground := func() (c string) {
		o.must(o.Eval(o.ctx, `getComputedStyle(document.body).backgroundColor`, &c))
		return c
	}
	o.must(o.Click(o.ctx, "#theme"))
	o.reads("#theme", "Light")
	light := ground()
	o.must(o.Click(o.ctx, "#theme"))
	o.reads("#theme", "Dark")
	Expect(ground()).NotTo(Equal(light))
	o.keeps("3-dark")
	o.must(o.Screen(o.ctx, browser.Shape{Width: 390, Height: 844, Scale: 2, Phone: true}))
	var beyond []string
	o.must(o.Eval(o.ctx, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".sr, .skip, svg")).map((e) => e.tagName + "." + e.className)`, &beyond))
	o.keeps("4-phone")
	Expect(beyond).To(BeEmpty())
	o.must(o.Screen(o.ctx, browser.Shape{Width: 1280, Height: 900, Scale: 1}))
	o.must(o.Click(o.ctx, "#theme"))
}

// explains looks up a session that has a home.
func (o *onlooker) explains(ctx context.Context, w *watched) {
	GinkgoHelper()
	lease, err := w.pool.Acquire(ctx, client.AcquireRequest{RequestID: "look-1", SessionID: "looked-up", Sender: "train", Epoch: 1, Wait: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	o.types("#session", "looked-up")
	o.reads("#found", "looked-up of sender train lives on "+lease.Backend.Name+" and has 1 active lease.")
	o.reads("#found", "had the least load per capacity")
	_, err = lease.Release(ctx, client.Report{Outcome: client.NotSent})
	Expect(err).NotTo(HaveOccurred())
}

// complainsOfNothing demands that the page threw nothing; that a person was not known, a session not
// found and a replica gone is written down by the browser itself.
func (o *onlooker) complainsOfNothing() {
	GinkgoHelper()
	for _, p := range o.Problems() {
		known := strings.Contains(p, `"source":"network"`) || strings.Contains(p, strconv.Itoa(http.StatusUnauthorized))
		Expect(known).To(BeTrue(), p)
	}
}
