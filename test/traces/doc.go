// Package traces is an OpenTelemetry receiver for tests: it keeps the spans that a manager sends, and
// knows what the trace of a request looks like.
package traces
