package leaselog

import (
	"context"
	"log/slog"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// Log is a server.Observer.
type Log struct{ to *slog.Logger }

// New makes one that writes to a logger.
func New(to *slog.Logger) Log { return Log{to} }

// Context is empty: a log traces nothing.
func (Log) Context(router.PoolKey, router.RequestID, string) string { return "" }

// Told writes a line, unless its level is below the logger's.
func (l Log) Told(s *steps.Step) {
	ctx := context.Background()
	level := levelOf(s)
	if !l.to.Enabled(ctx, level) {
		return
	}
	l.to.LogAttrs(ctx, level, messageOf(s), attributesOf(s)...)
}

// levelOf is what the line is worth: Error for what this process did wrong, Warn for what a person
// should look at, Info for what is rare, Debug for each turn of each session.
func levelOf(s *steps.Step) slog.Level {
	switch {
	case s.Reason == steps.ReasonInternal:
		return slog.LevelError
	case s.Reason == router.ReasonPoolFailed, s.Fate == router.FateFailed, s.Fate == router.FateIsolated:
		return slog.LevelWarn
	case s.Outcome == router.Ambiguous, s.Reason == router.ReasonTokenInvalid, s.Reason == router.ReasonRequestConflict,
		s.Reason == router.ReasonExecutionLost, s.Reason == server.ReasonForbidden, s.Reason == server.ReasonUnauthenticated:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func messageOf(s *steps.Step) string {
	if s.Reason != "" {
		return "lease: " + string(s.Kind) + " refused"
	}
	return map[steps.Kind]string{
		steps.Acquire: "lease: granted", steps.Renew: "lease: renewed", steps.Release: "lease: released", steps.Generate: "lease: generated",
	}[s.Kind]
}

// attributesOf are what is known of the step; what is not is left out.
func attributesOf(s *steps.Step) []slog.Attr {
	out := []slog.Attr{slog.String("pool", s.Pool.Namespace+"/"+s.Pool.Name)}
	for _, a := range []struct{ key, value string }{
		{"request", string(s.Request)}, {"session", string(s.Session)}, {"sender", string(s.Sender)}, {"backend", string(s.Backend)},
		{"incarnation", string(s.Incarnation)}, {"rid", string(s.RID)}, {"outcome", string(s.Outcome)}, {"fate", string(s.Fate)},
		{"reason", string(s.Reason)}, {"via", string(s.Via)},
	} {
		if a.value != "" {
			out = append(out, slog.String(a.key, a.value))
		}
	}
	if s.Term > 0 {
		out = append(out, slog.Int64("term", int64(s.Term)), slog.Int64("epoch", int64(s.Epoch)))
	}
	if s.Err != nil {
		out = append(out, slog.Any("error", s.Err))
	}
	if s.Again {
		out = append(out, slog.Bool("again", true))
	}
	return append(out, slog.Duration("took", s.Ended.Sub(s.Began)))
}
