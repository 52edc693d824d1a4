package proxy_test

import (
	"bufio"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// diary is an Observer that writes steps down.
type diary struct {
	mu   sync.Mutex
	told []steps.Step // guarded by mu
}

func (d *diary) Told(s *steps.Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, *s)
}

func (*diary) Exchange(_ router.PoolKey, request router.RequestID, traceparent string) string {
	return "exchange of " + string(request[:2]) + " below " + traceparent
}

func (d *diary) steps() []steps.Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

// seen is what is looked at of a step.
type seen struct {
	Kind         steps.Kind
	Began, Ended time.Duration
	Waited       time.Duration
	Outcome      router.Outcome
	Reason       router.Reason
}

// since lists steps with their times as they stand to the first of them.
func since(list []steps.Step) (out []seen) {
	for _, s := range list {
		one := seen{s.Kind, s.Began.Sub(list[0].Began), s.Ended.Sub(list[0].Began), 0, s.Outcome, s.Reason}
		if !s.WaitBegan.IsZero() {
			one.Waited = s.Ended.Sub(s.WaitBegan)
		}
		out = append(out, one)
	}
	return out
}

func TestEachStepOfAProxiedRequestIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		g := newCalm(t, proxy.Config{Observer: d}, after(100*time.Second))
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		a := g.post("s1")
		pass(time.Minute)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		pass(3 * time.Minute)
		if !a.over() || a.Code != 200 {
			t.Fatalf("answered %d %s", a.Code, a.Body)
		}
		const granted, ended = time.Minute, 160 * time.Second
		want := []seen{
			{Kind: steps.Acquire, Ended: granted, Waited: granted},
			{Kind: steps.Renew, Began: granted, Ended: granted}, // since the start window of a lease that was waited for is unknown
			{Kind: steps.Renew, Began: 100 * time.Second, Ended: 100 * time.Second},
			{Kind: steps.Renew, Began: 140 * time.Second, Ended: 140 * time.Second},
			{Kind: steps.Release, Began: ended, Ended: ended, Outcome: router.Succeeded},
			{Kind: steps.Generate, Began: granted, Ended: ended, Outcome: router.Succeeded},
		}
		told := d.steps()
		if diff := cmp.Diff(want, since(told)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		for _, s := range told {
			if s.Via != steps.ViaProxy || s.Pool != rigKey || s.Request != told[0].Request || s.Session != "s1" || s.Sender != "train" || s.Backend != "b0" || s.RID == "" || s.Term != 1 || s.Epoch != 1 {
				t.Errorf("the step does not say whom it concerns: %+v", s)
			}
		}
	})
}

func TestWhatDoesNotReachAnEngineIsToldAsSuch(t *testing.T) {
	d := &diary{}
	g := newRig(t, proxy.Config{Observer: d}, closedPort(t))
	if status, text := g.post("/generate", ask1); status/100 == 2 {
		t.Fatalf("answered %d %s", status, text)
	}
	kinds := map[router.RequestID][]steps.Kind{}
	for _, s := range d.steps() {
		kinds[s.Request] = append(kinds[s.Request], s.Kind)
		if s.Kind != steps.Acquire && s.Outcome != router.NotSent {
			t.Errorf("%s ended as %q", s.Kind, s.Outcome)
		}
	}
	for request, list := range kinds {
		lone := slices.Equal(list, []steps.Kind{steps.Acquire}) // refused: the one backend had refused the connection
		if !lone && !slices.Equal(list, []steps.Kind{steps.Acquire, steps.Release, steps.Generate}) {
			t.Errorf("%s was told as %v", request, list)
		}
	}
	if len(kinds) == 0 {
		t.Error("nothing was told")
	}
}

func TestARefusedRequestIsToldWithItsReason(t *testing.T) {
	d := &diary{}
	g := newRig(t, proxy.Config{Observer: d}, "http://b0")
	if status, text := g.post("/generate", ask1, "X-Berthmaster-Epoch", "9"); status/100 == 2 {
		t.Fatalf("answered %d %s", status, text)
	}
	told := d.steps()
	if len(told) != 1 || told[0].Kind != steps.Acquire || told[0].Reason == "" || told[0].Err != nil || told[0].Sender != "train" {
		t.Errorf("%+v", told)
	}
}

func TestTheEngineIsToldOfTheExchangesTrace(t *testing.T) {
	engine := script(t, func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
		_, _ = io.WriteString(c, plain(plainJSON))
		return stayOpen
	})
	g := newRig(t, proxy.Config{Observer: &diary{}}, engine.url)
	if status, text := g.post("/generate", ask1, steps.TraceHeader, "mine"); status != 200 {
		t.Fatalf("answered %d %s", status, text)
	}
	if _, head := engine.last(); head.Get(steps.TraceHeader) != "exchange of p- below mine" {
		t.Errorf("the engine was told of %q", head.Get(steps.TraceHeader))
	}
}
