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
// to its release; nil: they are. A release whose answer was lost with its leader is made again under another term;
// one that a router refused, as one that no longer leads, has released nothing.
func Lease(spans []Span) error {
	requests, terms, count := map[string]struct{}{}, map[string]struct{}{}, map[string]int{}
	for _, s := range spans {
		releases := s.Name == "release" && s.Attributes["berthmaster.reason"] == ""
		if releases {
			terms[s.Attributes["berthmaster.term"]] = struct{}{}
		}
		if releases || s.Name != "release" {
			count[s.Name]++
		}
		if id := s.Attributes["berthmaster.request"]; id != "" {
			requests[id] = struct{}{}
		}
	}
	if len(requests) != 1 || len(terms) == 0 || count["release"] != len(terms) {
		return fmt.Errorf("spans %v of %d requests, released under %d terms", count, len(requests), len(terms))
	}
	return below(spans)
}

// below demands that there is one root, an acquire, and that all else hangs on it. Two routers may have
// granted a request whose first answer never came: both say so by one id.
func below(spans []Span) error {
	roots := map[string]Span{}
	var faults []error
	for _, s := range spans {
		if s.Parent == "" {
			roots[s.ID] = s
		}
	}
	if len(roots) != 1 {
		return fmt.Errorf("%d roots", len(roots))
	}
	var root Span
	for _, root = range roots {
		if root.Name != "acquire" {
			faults = append(faults, fmt.Errorf("the root is a %s", root.Name))
		}
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
		list := Named(spans, name)
		if len(list) != 1 || list[0].Parent != top[0].ID {
			faults = append(faults, fmt.Errorf("%s: %v, want one below the proxy's", name, list))
		}
	}
	return errors.Join(faults...)
}
