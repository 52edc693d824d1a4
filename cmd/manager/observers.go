package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/leaselog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
	"github.com/berthmaster/berthmaster/internal/tracing"
)

// lastSpans bounds how long the end of the process waits for spans to be sent.
const lastSpans = 5 * time.Second

// tracingOptions are the flags about traces.
type tracingOptions struct {
	endpoint string
	percent  int
}

func (o *tracingOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.endpoint, "trace-endpoint", "",
		"URL of an OpenTelemetry receiver (OTLP over HTTP), e.g. http://collector:4318; empty: nothing is traced")
	flags.IntVar(&o.percent, "trace-percent", 10,
		"how many of a hundred requests are traced where their clients have not decided")
}

func (o *tracingOptions) validate() error {
	if o.percent < 0 || o.percent > 100 {
		return fmt.Errorf("--trace-percent %d: must be between 0 and 100", o.percent)
	}
	return nil
}

// observers are all who are told of calls about leases.
type observers struct {
	log    leaselog.Log
	traces *tracing.Tracing // nil: nothing is traced
}

func newObservers(o *tracingOptions, log *slog.Logger) (*observers, error) {
	out := &observers{log: leaselog.New(log)}
	if o.endpoint == "" {
		return out, nil
	}
	var err error
	out.traces, err = tracing.New(context.Background(), tracing.Config{Endpoint: o.endpoint, Percent: o.percent})
	return out, err
}

// Told passes a step on.
func (o *observers) Told(s *steps.Step) {
	o.log.Told(s)
	if o.traces != nil {
		o.traces.Told(s)
	}
}

// Context is the trace context of a lease.
func (o *observers) Context(pool router.PoolKey, request router.RequestID, traceparent string) string {
	if o.traces == nil {
		return ""
	}
	return o.traces.Context(pool, request, traceparent)
}

// Exchange is the trace context of an exchange between the proxy and an engine.
func (o *observers) Exchange(pool router.PoolKey, request router.RequestID, traceparent string) string {
	if o.traces == nil {
		return ""
	}
	return o.traces.Exchange(pool, request, traceparent)
}

// around traces the calls of a handler that is the proxy's.
func (o *observers) around(proxy http.Handler) http.Handler {
	if o.traces == nil {
		return proxy
	}
	return o.traces.Proxy(proxy)
}

// close sends what has not been sent; nil: there is nothing.
func (o *observers) close() error {
	if o == nil || o.traces == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	if err := o.traces.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the last spans: %w", err)
	}
	return nil
}
