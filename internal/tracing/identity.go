package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthmaster/berthmaster/internal/router"
)

// identity is the trace and the root span of a request, the same in every replica.
func identity(pool router.PoolKey, request router.RequestID) (trace.TraceID, trace.SpanID) {
	sum := sha256.Sum256([]byte(pool.Namespace + "/" + pool.Name + "/" + string(request)))
	var t trace.TraceID
	var s trace.SpanID
	copy(t[:], sum[:16])
	copy(s[:], sum[16:24])
	return t, s
}

// rootKey marks the context of a span that is to be a request's root.
type rootKey struct{}

// root is what rootKey holds.
type root struct {
	trace trace.TraceID
	span  trace.SpanID
}

// generator gives roots their own ids, and other spans ids by chance.
type generator struct{}

// NewIDs is called for spans without a parent.
func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if r, ok := ctx.Value(rootKey{}).(root); ok {
		return r.trace, r.span
	}
	var t trace.TraceID
	_, _ = rand.Read(t[:]) // never fails: crypto/rand documents that it aborts instead
	return t, generator{}.NewSpanID(ctx, t)
}

// NewSpanID is called for spans with a parent.
func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if s, ok := ctx.Value(exchangeKey{}).(trace.SpanID); ok {
		return s
	}
	var s trace.SpanID
	_, _ = rand.Read(s[:]) // never fails, see NewIDs
	return s
}

// sent is the context that a caller sent; false: none, or one that makes no sense.
func sent(traceparent string) (trace.SpanContext, bool) {
	if traceparent == "" {
		return trace.SpanContext{}, false
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	s := trace.SpanContextFromContext(ctx)
	return s, s.IsValid()
}

// header is a context as a caller passes it on.
func header(s trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), s), carrier)
	return carrier["traceparent"]
}
