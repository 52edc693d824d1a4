// Package traces plays the demo's traffic through a traced router and collects the spans, as an
// OpenTelemetry receiver would get them.
package traces
