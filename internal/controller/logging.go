package controller

import (
	"context"
	"errors"
	"log/slog"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/internal/router"
)

// logOf makes the logger of a reconcile, by the words that lines about leases have: each line says the
// pool and, once the pool has one, the term. A nil request stands for what concerns no pool.
func (r *Reconciler) logOf(base logr.Logger) func(*ctrl.Request) logr.Logger {
	base = base.WithValues("controller", "inferencepool")
	return func(request *ctrl.Request) logr.Logger {
		if request == nil {
			return base
		}
		l := base.WithValues("pool", request.String())
		// It is called by the worker that is about to reconcile the pool, and the term is that worker's.
		if t := r.tenures.get(request.NamespacedName); t != nil && t.term > 0 {
			l = l.WithValues("term", t.term)
		}
		return l
	}
}

// lines is the log of what a reconcile does under a term, which may have begun in it.
func (w *world) lines(ctx context.Context, term int64) *slog.Logger {
	l := slog.New(logr.ToSlogHandler(log.FromContext(ctx)))
	if term > w.term {
		return l.With("term", term)
	}
	return l
}

// orderLines tells how an order to an engine ended, which is after the reconcile that gave it.
func orderLines(l *slog.Logger, backend router.BackendName, life router.Incarnation, o order) func(error) {
	l = l.With("backend", string(backend), "incarnation", string(life), "order", o.kind.String())
	return func(err error) {
		ctx := context.Background()
		switch {
		case err == nil && o.kind == orderVerify:
			l.DebugContext(ctx, "engine: was asked")
		case err == nil:
			l.InfoContext(ctx, "engine: did what it was told")
		case errors.Is(err, context.Canceled): // the pool went, or this process does
			l.DebugContext(ctx, "engine: was not waited for")
		default:
			l.WarnContext(ctx, "engine: did not do what it was told", "error", callFault(err))
		}
	}
}
