package tracing

import (
	"context"
	"crypto/sha256"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// Proxy makes a span of each call of the transparent proxy, below which its steps are. What is not
// traced is told so to the steps and to the engine, as a context that is not sampled.
func (t *Tracing) Proxy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, traced := t.arrival(r)
		passed := trace.SpanContextFromContext(ctx)
		if traced {
			var span trace.Span
			_, span = t.tracer.Start(ctx, "proxy", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("url.path", r.URL.Path)))
			defer span.End()
			passed = span.SpanContext()
		}
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Set(steps.TraceHeader, header(passed))
		next.ServeHTTP(w, r)
	})
}

// arrival is what a call's span hangs on, and whether it gets one. The caller decides, if it has a
// trace of its own.
func (t *Tracing) arrival(r *http.Request) (context.Context, bool) {
	if s, ok := sent(r.Header.Get(steps.TraceHeader)); ok {
		return trace.ContextWithRemoteSpanContext(context.Background(), s), s.IsSampled()
	}
	id, span := generator{}.NewIDs(context.Background())
	if t.sampled(id) {
		return context.WithValue(context.Background(), rootKey{}, root{id, span}), true
	}
	return trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span})), false
}

// exchangeKey marks the context of a span that is to be that of a request's exchange with its engine.
type exchangeKey struct{}

// exchangeOf is the span of a request's exchange: known before it begins, since the engine is told of
// it. A request of the proxy has one exchange.
func exchangeOf(pool router.PoolKey, request router.RequestID) trace.SpanID {
	sum := sha256.Sum256([]byte("exchange " + pool.Namespace + "/" + pool.Name + "/" + string(request)))
	var s trace.SpanID
	copy(s[:], sum[:])
	return s
}

// Exchange is the trace context under which the proxy sends a request to its engine; empty: it is not
// traced.
func (t *Tracing) Exchange(pool router.PoolKey, request router.RequestID, traceparent string) string {
	parent, _, ok := t.parent(pool, request, traceparent)
	if !ok {
		return ""
	}
	return header(parent.WithSpanID(exchangeOf(pool, request)))
}
