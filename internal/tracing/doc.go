// Package tracing tells OpenTelemetry of leases: one trace from acquire through waiting and renewing
// to release. It is off unless an exporter is configured.
//
// Nothing is carried from call to call. The trace and the root span of a request follow from its pool
// and its id, so that a renewal which another replica answers after a take-over still belongs to it. A
// caller that sends a W3C trace context of its own has its lease's spans in its own trace instead. The
// answer to an acquire says the context, for the client to pass on to the engine.
//
// A call of the transparent proxy is a span of its own, with the steps of its lease and the exchange
// with the engine below it; the engine is told of the exchange's span.
package tracing
