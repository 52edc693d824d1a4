package traces

import (
	"errors"
	"fmt"
	"strings"
)

// Context takes a W3C traceparent apart; ok is false if it is none.
func Context(traceparent string) (trace, span string, ok bool) {
	parts := strings.Split(traceparent, "-")
	if len(parts) != 4 || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// Named returns the spans of that name.
func Named(spans []Span, name string) (out []Span) {
	for _, s := range spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// Lease says why the spans of a trace are not those of one lease that a client held, from its acquire
// to its release; nil: they are.
func Lease(spans []Span) error {
	requests, count := map[string]struct{}{}, map[string]int{}
	var root Span
	var faults []error
	for _, s := range spans {
		count[s.Name]++
		if id := s.Attributes["berthmaster.request"]; id != "" {
			requests[id] = struct{}{}
		}
		if s.Parent != "" {
			continue
		}
		// Two routers may have granted a request whose first answer never came: both say so by one id.
		if root.ID != "" && root.ID != s.ID || s.Name != "acquire" {
			faults = append(faults, fmt.Errorf("%s is a second root, or no acquire", s.Name))
		}
		root = s
	}
	if root.ID == "" || len(requests) != 1 || count["release"] != 1 {
		faults = append(faults, fmt.Errorf("spans %v of %d requests", count, len(requests)))
	}
	for _, s := range spans {
		if s.Parent != "" && s.Parent != root.ID && s.Name != "wait" {
			faults = append(faults, fmt.Errorf("%s does not hang on the acquire", s.Name))
		}
	}
	return errors.Join(faults...)
}

// Proxied says why the spans of a trace are not those of one call of the transparent proxy below a span
// of its caller's; nil: they are.
func Proxied(spans []Span, caller string) error {
	top := Named(spans, "proxy")
	if len(top) != 1 || top[0].Parent != caller {
		return fmt.Errorf("%d spans of the proxy, of which the first hangs on %v", len(top), top)
	}
	var faults []error
	for _, name := range []string{"acquire", "generate", "release"} {
		below := Named(spans, name)
		if len(below) != 1 || below[0].Parent != top[0].ID {
			faults = append(faults, fmt.Errorf("%s: %v, want one below the proxy's", name, below))
		}
	}
	return errors.Join(faults...)
}
