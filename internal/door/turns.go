package door

import (
	"context"
	"crypto/tls"
	"runtime"
	"sync/atomic"
)

// handshakes are the places of those TLS handshakes that may be computed at once: half of the processors, so
// that newcomers leave the rest to those whose calls are answered.
type handshakes chan struct{}

func newHandshakes() handshakes { return make(handshakes, max(1, runtime.GOMAXPROCS(0)/2)) }

// Pace has the handshakes on connections of this door take turns. A turn begins once the client's
// greeting is in and ends before the answer to it is written, so that no client keeps it by what it does.
// What follows a request to greet again is not paced.
func (d *Door) Pace(c *tls.Config) *tls.Config {
	paced, further := c.Clone(), c.GetConfigForClient
	paced.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if v := inside(hello.Conn); v != nil {
			if err := v.turn.take(hello.Context(), d.handshakes); err != nil {
				return nil, err
			}
		}
		if further == nil {
			return nil, nil //nolint:nilnil // the same configuration, by the contract of the field
		}
		return further(hello)
	}
	return paced
}

// turn is a place that a connection has in handshakes, or none.
type turn struct{ of atomic.Pointer[handshakes] }

func (t *turn) take(ctx context.Context, all handshakes) error {
	select {
	case all <- struct{}{}:
		t.of.Store(&all)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end gives the place back, if there is one.
func (t *turn) end() {
	if t.of.Load() == nil {
		return
	}
	if all := t.of.Swap(nil); all != nil {
		<-*all
	}
}
