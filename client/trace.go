package client

import "context"

// traceHeader carries the W3C trace context.
const traceHeader = "Traceparent"

// traceparent is the caller's trace context; empty: it has none.
func (p *Pool) traceparent(ctx context.Context) string {
	if p.config.Traceparent == nil {
		return ""
	}
	return p.config.Traceparent(ctx)
}
