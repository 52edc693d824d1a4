package prober

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

// infoTimeout bounds the calls that need no generation, where the target's own time-out is longer.
const infoTimeout = 5 * time.Second

// parkedMessage is what an operator reads of an engine that is alive and does not generate.
const parkedMessage = "/health fails while /server_info answers: " +
	"somebody else paused the engine, or it is starting or terminating; it gets no new leases until /health answers"

// engine is what a probe asks of a *sglang.Client.
type engine interface {
	Health(ctx context.Context) error
	ModelInfo(ctx context.Context) (sglang.ModelInfo, error)
	ServerInfo(ctx context.Context) (sglang.ServerInfo, error)
	Loads(ctx context.Context) ([]sglang.LoadSnapshot, error)
}

// probe asks an engine once how it is. Each call is bounded by timeout, those that need no
// generation by infoTimeout too.
//
// The calls are made one after the other on purpose: an answer to /server_info that lands while
// /health waits makes a paused engine answer it with 200.
func probe(ctx context.Context, e engine, timeout time.Duration) event {
	_, err := bounded(ctx, timeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.Health(ctx)
	})
	switch {
	case err == nil:
		return read(ctx, e, min(timeout, infoTimeout))
	case sglang.Refused(err):
		return refusal()
	case !mayBeParked(err):
		return event{kind: probeFailed, message: describe("/health", err, timeout)}
	}
	if _, infoErr := bounded(ctx, min(timeout, infoTimeout), e.ServerInfo); infoErr != nil {
		if sglang.Refused(infoErr) {
			return refusal()
		}
		return event{kind: probeFailed, message: describe("/health", err, timeout)}
	}
	return event{kind: probeParked, message: parkedMessage}
}

// mayBeParked reports whether /health failed in a way in which a paused engine fails it.
func mayBeParked(err error) bool {
	return sglang.Code(err) == http.StatusServiceUnavailable || errors.Is(err, context.DeadlineExceeded)
}

func refusal() event {
	return event{kind: probeRefused, message: "nobody listens at the engine's address: connection refused"}
}

// read completes a successful probe by what the engine says of itself. Not knowing it is no
// failure of the engine, unless it has stopped listening meanwhile.
func read(ctx context.Context, e engine, timeout time.Duration) event {
	info, err := bounded(ctx, timeout, e.ModelInfo)
	if sglang.Refused(err) {
		return refusal()
	}
	answer := event{kind: probeAnswered, version: info.WeightVersion}
	answer.capacity, answer.total = load(ctx, e, timeout)
	switch {
	case err != nil:
		answer.message = "the weight version could not be read: " + describe("/model_info", err, timeout)
	case info.WeightVersion == "":
		answer.message = "the engine tells no weight version in /model_info"
	}
	return answer
}

// load reads how much the engine runs at once, 0 if it does not tell, and how much it holds now,
// noTotal if it does not tell.
func load(ctx context.Context, e engine, timeout time.Duration) (capacity, total int64) {
	total = noTotal
	if loads, err := bounded(ctx, timeout, e.Loads); err == nil {
		total = 0
		for _, l := range loads {
			total += l.Total()
		}
		if capacity = sglang.LoadsCapacity(loads); capacity > 0 {
			return capacity, total
		}
	}
	info, err := bounded(ctx, timeout, e.ServerInfo)
	if err != nil {
		return 0, total
	}
	return info.Capacity(), total
}

// bounded makes one call under a time limit of its own.
func bounded[T any](ctx context.Context, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

// describe says what went wrong in words that stay the same while the problem does. The text of
// Go's own network errors does not: it names the local port.
func describe(route string, err error, timeout time.Duration) string {
	if status, ok := errors.AsType[*sglang.StatusError](err); ok {
		return status.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("%s did not answer within %v", route, timeout)
	}
	if errors.Is(err, sglang.ErrMalformed) || errors.Is(err, sglang.ErrReplyTooLarge) {
		return route + " answered what an SGLang engine would not"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the engine's host name %q does not resolve", dns.Name)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Sprintf("%s: %v", route, op.Err)
	}
	return route + ": the connection was cut"
}
