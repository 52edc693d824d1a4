package enginesim

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"k8s.io/utils/clock"
)

// timebase converts between the engine's time, which begins at 0 with the process, and the clock's.
type timebase struct {
	clock  clock.Clock
	origin time.Time
	speed  float64
}

func newTimebase(c clock.Clock, speed float64) timebase {
	return timebase{clock: c, origin: c.Now(), speed: speed}
}

// now is the engine's time.
func (b timebase) now() time.Duration {
	return time.Duration(float64(b.clock.Since(b.origin)) * b.speed)
}

// real is how long a span of engine time lasts on the clock, rounded up so that a timer never comes early.
func (b timebase) real(d time.Duration) time.Duration {
	return time.Duration(float64(d)/b.speed) + 1
}

// seconds is a moment of the clock as the engine writes it: seconds since 1970.
func (b timebase) seconds() float64 { return float64(b.clock.Now().UnixNano()) / 1e9 }

// pause waits for a span of engine time, and says whether ctx let it.
func (b timebase) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := b.clock.NewTimer(b.real(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
		return nil
	}
}

func randomID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails; it ends the program instead
	return hex.EncodeToString(b)
}
