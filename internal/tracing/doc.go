// Package tracing tells OpenTelemetry of leases: one trace from acquire through waiting and renewing
// to release. It is off unless an exporter is configured.
//
// Nothing is carried from call to call. The trace and the root span of a request follow from its pool
// and its id, so that a renewal which another replica answers after a take-over still belongs to it. A
// caller that sends a W3C trace context of its own has its lease's spans in its own trace instead. The
// answer to an acquire says the context, for the client to pass on to the engine.
package tracing
