package tracing

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// proxied plays a call of the proxy whose caller sent that context: it tells the steps of one lease. It
// returns the spans, and what the engine was told.
func proxied(t *testing.T, percent int, traceparent string) (tracetest.SpanStubs, string) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	traces := To(percent, sdk.WithSyncer(out))
	var engine string
	h := traces.Proxy(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mine := r.Header.Get("Traceparent")
		for _, kind := range []steps.Kind{steps.Acquire, steps.Renew, steps.Release, steps.Generate} {
			s := step(kind, func(s *steps.Step) { s.Via, s.Traceparent, s.Outcome = steps.ViaProxy, mine, router.Succeeded })
			if kind == steps.Acquire {
				s.WaitBegan = began.Add(time.Millisecond)
			}
			traces.Told(s)
		}
		engine = traces.Exchange(pool, "r1", mine)
	}))
	r := httptest.NewRequest(http.MethodPost, "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy/generate", nil)
	if traceparent != "" {
		r.Header.Set("Traceparent", traceparent)
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.Header.Get("Traceparent") != traceparent {
		t.Error("the caller's request was changed")
	}
	return out.GetSpans(), engine
}

func TestAProxiedCallHasItsLeaseAndItsExchangeBelowIt(t *testing.T) {
	for name, c := range map[string]struct{ traceparent, parent string }{
		"a caller with a trace":    {theirs, theirs[36:52]},
		"a caller without a trace": {"", "0000000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			spans, engine := proxied(t, 100, c.traceparent)
			byName := map[string]tracetest.SpanStub{}
			for _, s := range spans {
				byName[s.Name] = s
			}
			top := byName["proxy"]
			if len(spans) != 6 || top.Parent.SpanID().String() != c.parent {
				t.Fatalf("%d spans, proxy below %v", len(spans), top.Parent.SpanID())
			}
			for child, parent := range map[string]string{"acquire": "proxy", "renew": "proxy", "generate": "proxy", "release": "proxy", "wait": "acquire"} {
				if got, want := byName[child].Parent, byName[parent].SpanContext; got.SpanID() != want.SpanID() || got.TraceID() != want.TraceID() {
					t.Errorf("%s hangs on %v, not on %s", child, got.SpanID(), parent)
				}
			}
			if exchange := byName["generate"]; header(exchange.SpanContext) != engine || exchange.SpanKind != trace.SpanKindClient {
				t.Errorf("the engine was told %s, the exchange is %s", engine, header(exchange.SpanContext))
			}
		})
	}
}

func TestACallThatIsNotTracedIsNotTracedBelowEither(t *testing.T) {
	for name, c := range map[string]struct {
		percent     int
		traceparent string
	}{
		"the caller decided so": {100, theirs[:53] + "00"},
		"the percentage did":    {0, ""},
	} {
		if spans, engine := proxied(t, c.percent, c.traceparent); len(spans) > 0 || engine != "" {
			t.Errorf("%s: %d spans, and the engine was told %q", name, len(spans), engine)
		}
	}
}

func TestAGenerationThatDidNotEndWellIsAnError(t *testing.T) {
	for outcome, want := range map[router.Outcome]codes.Code{router.Succeeded: codes.Unset, router.Aborted: codes.Unset, router.Ambiguous: codes.Error, router.NotSent: codes.Error} {
		got := spans(t, 100, step(steps.Generate, func(s *steps.Step) { s.Outcome = outcome }))
		if len(got) != 1 || got[0].Status.Code != want {
			t.Errorf("%s: %+v", outcome, got)
		}
	}
}
