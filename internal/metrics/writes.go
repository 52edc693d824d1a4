package metrics

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/internal/router"
)

// writeResult is how a write of a status ended.
type writeResult string

const (
	written  writeResult = "Written"
	conflict writeResult = "Conflict"
	failed   writeResult = "Failed"
)

func resultOf(err error) writeResult {
	switch {
	case err == nil:
		return written
	case apierrors.IsConflict(err):
		return conflict
	default:
		return failed
	}
}

// StatusWrites counts the statuses that are applied through a client.
func (c *Collector) StatusWrites(through client.Client) client.Client {
	return statusClient{through, c.tally}
}

type statusClient struct {
	client.Client
	tally *tally
}

// Status is the writer of statuses.
func (c statusClient) Status() client.SubResourceWriter {
	return statusWriter{c.Client.Status(), c.tally}
}

type statusWriter struct {
	client.SubResourceWriter
	tally *tally
}

// named is what the pools' apply configurations are.
type named interface {
	GetNamespace() string
	GetName() string
}

// Apply writes a status.
func (w statusWriter) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	err := w.SubResourceWriter.Apply(ctx, o, opts...)
	if pool, ok := o.(named); ok {
		w.tally.Wrote(router.PoolKey{Namespace: pool.GetNamespace(), Name: pool.GetName()}, err)
	}
	return err
}
