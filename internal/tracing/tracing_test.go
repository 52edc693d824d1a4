package tracing

import (
	"slices"
	"strconv"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

var (
	pool  = router.PoolKey{Namespace: "rl", Name: "policy"}
	began = time.Unix(1_700_000_000, 0)
)

const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func step(kind steps.Kind, change ...func(*steps.Step)) *steps.Step {
	s := &steps.Step{Kind: kind, Pool: pool, Request: "r1", Session: "s1", Sender: "train", Backend: "b0", Term: 2, Began: began, Ended: began.Add(time.Second)}
	for _, f := range change {
		f(s)
	}
	return s
}

// spans are those that steps make, in two replicas that know nothing of each other.
func spans(t *testing.T, percent int, steps ...*steps.Step) tracetest.SpanStubs {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	replicas := []*Tracing{To(percent, sdk.WithSyncer(out)), To(percent, sdk.WithSyncer(out))}
	for i, s := range steps {
		replicas[i%2].Told(s)
	}
	return out.GetSpans()
}

func TestARequestIsOneTraceAcrossReplicas(t *testing.T) {
	got := spans(t, 100, step(steps.Acquire, func(s *steps.Step) { s.WaitBegan = began.Add(time.Millisecond) }), step(steps.Renew), step(steps.Release))
	var names []string
	byName := map[string]tracetest.SpanStub{}
	for _, s := range got {
		names = append(names, s.Name)
		byName[s.Name] = s
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"acquire", "release", "renew", "wait"}) {
		t.Fatalf("spans %v", names)
	}
	root := byName["acquire"]
	if root.Parent.IsValid() {
		t.Errorf("acquire has the parent %v, and is the root", root.Parent)
	}
	for _, child := range []string{"wait", "renew", "release"} {
		if s := byName[child]; s.Parent.SpanID() != root.SpanContext.SpanID() || s.SpanContext.TraceID() != root.SpanContext.TraceID() {
			t.Errorf("%s hangs on %v of %v, not on acquire", child, s.Parent.SpanID(), s.SpanContext.TraceID())
		}
	}
	if !byName["wait"].StartTime.Equal(began.Add(time.Millisecond)) || !root.EndTime.Equal(began.Add(time.Second)) {
		t.Errorf("times are those of the telling, not of the step: %v to %v", byName["wait"].StartTime, root.EndTime)
	}
}

func TestACallersOwnTraceIsJoinedAndItsDecisionObeyed(t *testing.T) {
	joined := spans(t, 0, step(steps.Acquire, func(s *steps.Step) { s.Traceparent = theirs }))
	if len(joined) != 1 || joined[0].SpanContext.TraceID().String() != theirs[3:35] || joined[0].Parent.SpanID().String() != theirs[36:52] {
		t.Errorf("%+v", joined)
	}
	if silent := spans(t, 100, step(steps.Acquire, func(s *steps.Step) { s.Traceparent = theirs[:53] + "00" })); len(silent) > 0 {
		t.Errorf("the caller does not trace, and %d spans were made", len(silent))
	}
}

func TestTheAnswerNamesTheRootForTheEngine(t *testing.T) {
	root := spans(t, 100, step(steps.Acquire))[0]
	context, ok := sent(To(100, sdk.WithSyncer(tracetest.NewInMemoryExporter())).Context(pool, "r1", ""))
	if !ok || context.TraceID() != root.SpanContext.TraceID() || context.SpanID() != root.SpanContext.SpanID() || !context.IsSampled() {
		t.Errorf("the engine is told %v, the root is %v", context, root.SpanContext)
	}
}

func TestPercentIsOfRequestsAndAllOfOneOrNone(t *testing.T) {
	const n = 4000
	traced := 0
	for i := range n {
		named := func(s *steps.Step) { s.Request = router.RequestID("request-" + strconv.Itoa(i)) }
		switch len(spans(t, 25, step(steps.Acquire, named), step(steps.Release, named))) {
		case 2:
			traced++
		case 0:
		default:
			t.Fatalf("request %d is traced in part", i)
		}
	}
	if share := float64(traced) / n; share < 0.2 || share > 0.3 {
		t.Errorf("%v of the requests are traced, want a quarter", share)
	}
	if got := spans(t, 0, step(steps.Acquire)); len(got) > 0 {
		t.Errorf("0 percent, and %d spans", len(got))
	}
}

func TestARefusalIsAnErrorAndNoRoot(t *testing.T) {
	got := spans(t, 100, step(steps.Acquire, func(s *steps.Step) { s.Reason = router.ReasonNoBackend }))
	if len(got) != 1 || got[0].Status.Description != "NoBackend" || !got[0].Parent.IsValid() {
		t.Errorf("%+v", got)
	}
}
