package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// Config says where spans go.
type Config struct {
	// Endpoint is the URL of an OTLP receiver over HTTP, e.g. http://collector:4318. Empty: what the
	// environment says in OTEL_EXPORTER_OTLP_ENDPOINT.
	Endpoint string
	// Percent is the part of requests that is traced where the caller has not decided, 0 to 100.
	Percent int
}

// Tracing is an Observer of the lease API, and of the proxy, that makes spans. Its owner closes it.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	below    uint64 // requests whose trace id begins below this are traced
}

// New makes spans that go to an OTLP receiver, in batches and beside the calls they tell of.
func New(ctx context.Context, c Config) (*Tracing, error) {
	if c.Percent < 0 || c.Percent > 100 {
		return nil, fmt.Errorf("tracing: %d percent: must be between 0 and 100", c.Percent)
	}
	var options []otlptracehttp.Option
	if c.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(c.Endpoint))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	return To(c.Percent, sdk.WithBatcher(exporter)), nil
}

// To makes spans that go wherever the option says.
func To(percent int, where sdk.TracerProviderOption) *Tracing {
	provider := sdk.NewTracerProvider(where,
		sdk.WithIDGenerator(generator{}), sdk.WithSampler(sdk.AlwaysSample()), // what is not to be traced makes no span
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "berthmaster"))))
	below := uint64(math.MaxUint64)
	if percent < 100 {
		below = math.MaxUint64 / 100 * uint64(percent)
	}
	return &Tracing{provider: provider, tracer: provider.Tracer("berthmaster"), below: below}
}

// Close sends what has not been sent yet.
func (t *Tracing) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// sampled decides by the trace's own id, so that every replica decides alike.
func (t *Tracing) sampled(id trace.TraceID) bool {
	return t.below == math.MaxUint64 || binary.BigEndian.Uint64(id[:8]) < t.below
}

// parent is what a lease's spans hang on: the caller's span, or the request's root. ok is false where
// nothing is to be traced.
func (t *Tracing) parent(pool router.PoolKey, request router.RequestID, traceparent string) (s trace.SpanContext, own, ok bool) {
	if s, ok := sent(traceparent); ok {
		return s, false, s.IsSampled()
	}
	id, span := identity(pool, request)
	s = trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
	return s, true, request != "" && t.sampled(id)
}

// Context is the trace context of a request's lease.
func (t *Tracing) Context(pool router.PoolKey, request router.RequestID, traceparent string) string {
	s, _, ok := t.parent(pool, request, traceparent)
	if !ok {
		return ""
	}
	return header(s)
}

// Told makes the spans of a step. The first acquire of a request is its root, unless the caller has a
// span that it belongs to; all else hangs on that.
func (t *Tracing) Told(s *steps.Step) {
	parent, own, ok := t.parent(s.Pool, s.Request, s.Traceparent)
	if !ok {
		return
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	if own && s.Kind == steps.Acquire && !s.Again && s.Reason == "" {
		ctx = context.WithValue(context.Background(), rootKey{}, root{parent.TraceID(), parent.SpanID()})
	}
	if s.Kind == steps.Generate {
		ctx = context.WithValue(ctx, exchangeKey{}, exchangeOf(s.Pool, s.Request))
	}
	ctx, span := t.tracer.Start(ctx, string(s.Kind), trace.WithTimestamp(s.Began), trace.WithSpanKind(kindOf(s)), trace.WithAttributes(attributesOf(s)...))
	if !s.WaitBegan.IsZero() {
		_, wait := t.tracer.Start(ctx, "wait", trace.WithTimestamp(s.WaitBegan))
		wait.End(trace.WithTimestamp(s.Ended))
	}
	if failure := failureOf(s); failure != "" {
		span.SetStatus(codes.Error, failure)
	}
	span.End(trace.WithTimestamp(s.Ended))
}

// kindOf is what a step is to those who draw traces: a call that was answered, one that was made, or
// something that the proxy does in between.
func kindOf(s *steps.Step) trace.SpanKind {
	switch {
	case s.Kind == steps.Generate:
		return trace.SpanKindClient
	case s.Via == steps.ViaProxy:
		return trace.SpanKindInternal
	default:
		return trace.SpanKindServer
	}
}

// failureOf says what makes a step an error; empty: nothing does.
func failureOf(s *steps.Step) string {
	switch {
	case s.Reason != "":
		return string(s.Reason)
	case s.Kind == steps.Generate && s.Outcome != router.Succeeded && s.Outcome != router.Aborted:
		return string(s.Outcome)
	default:
		return ""
	}
}

func attributesOf(s *steps.Step) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("berthmaster.namespace", s.Pool.Namespace), attribute.String("berthmaster.pool", s.Pool.Name),
		attribute.String("berthmaster.request", string(s.Request)),
	}
	for _, a := range []struct{ key, value string }{
		{"session", string(s.Session)}, {"sender", string(s.Sender)}, {"backend", string(s.Backend)}, {"incarnation", string(s.Incarnation)},
		{"rid", string(s.RID)}, {"outcome", string(s.Outcome)}, {"fate", string(s.Fate)}, {"reason", string(s.Reason)},
	} {
		if a.value != "" {
			out = append(out, attribute.String("berthmaster."+a.key, a.value))
		}
	}
	if s.Term > 0 {
		out = append(out, attribute.Int64("berthmaster.term", int64(s.Term)))
	}
	return out
}
