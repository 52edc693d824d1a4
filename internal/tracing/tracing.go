package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// Config says where spans go.
type Config struct {
	// Endpoint is the URL of an OTLP receiver over HTTP, e.g. http://collector:4318. Empty: what the
	// environment says in OTEL_EXPORTER_OTLP_ENDPOINT.
	Endpoint string
	// Percent is the part of requests that is traced where the caller has not decided, 0 to 100.
	Percent int
}

// Tracing is a server.Observer that makes spans. Its owner closes it.
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
func (t *Tracing) Told(s *server.Step) {
	parent, own, ok := t.parent(s.Pool, s.Request, s.Traceparent)
	if !ok {
		return
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	if own && s.Kind == server.StepAcquire && !s.Again && s.Reason == "" {
		ctx = context.WithValue(context.Background(), rootKey{}, root{parent.TraceID(), parent.SpanID()})
	}
	ctx, span := t.tracer.Start(ctx, string(s.Kind), trace.WithTimestamp(s.Began), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributesOf(s)...))
	if !s.WaitBegan.IsZero() {
		_, wait := t.tracer.Start(ctx, "wait", trace.WithTimestamp(s.WaitBegan))
		wait.End(trace.WithTimestamp(s.Ended))
	}
	if s.Reason != "" {
		span.SetStatus(codes.Error, string(s.Reason))
	}
	span.End(trace.WithTimestamp(s.Ended))
}

func attributesOf(s *server.Step) []attribute.KeyValue {
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

// Proxy makes a span of each call of the transparent proxy, and has the engine see it as its parent.
func (t *Tracing) Proxy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.Background()
		if s, ok := sent(r.Header.Get(server.TraceHeader)); ok {
			if !s.IsSampled() {
				next.ServeHTTP(w, r)
				return
			}
			ctx = trace.ContextWithRemoteSpanContext(ctx, s)
		} else if id, _ := (generator{}).NewIDs(ctx); !t.sampled(id) {
			next.ServeHTTP(w, r)
			return
		}
		_, span := t.tracer.Start(ctx, "proxy", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("url.path", r.URL.Path)))
		defer span.End()
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Set(server.TraceHeader, header(span.SpanContext()))
		next.ServeHTTP(w, r)
	})
}
