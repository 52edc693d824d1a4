package proxy

import (
	"errors"
	"io"
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
)

// pass passes a successful reply on as it comes, and releases the lease as soon as the reply says
// by itself that it is complete: before its last bytes go to the client, so that a client that has
// its answer is no longer counted.
func (x *exchange) pass(resp *http.Response) {
	seen := newReply(resp)
	if seen.form == document && resp.ContentLength >= 0 && resp.ContentLength <= inMemory {
		x.passWhole(resp, seen)
		return
	}
	passed(resp.Header, x.c.w.Header())
	x.c.w.WriteHeader(resp.StatusCode)
	x.head = headSent
	// A reply of known length goes out as it fills the buffers of the connection; any other one
	// may pause at any byte.
	eager := resp.ContentLength < 0
	if eager {
		_ = x.c.out.Flush()
	}
	if err := x.copy(resp, seen, eager); err != nil {
		x.brokeInside(seen, err)
		return
	}
	seen.atEnd()
	end := x.conclude(seen.outcome(), seen.summary())
	if end.Outcome == router.Ambiguous && seen.state == partial {
		x.tellBroken(end)
		return
	}
	x.h.measure(x.c, label(end.Outcome))
}

// passWhole passes a short document on once all of it is there: engines write it in one go, and a
// client is better told in words that it broke off, and whether to repeat it, than by a cut
// connection.
func (x *exchange) passWhole(resp *http.Response, seen *reply) {
	text := make([]byte, resp.ContentLength)
	if _, err := io.ReadFull(resp.Body, text); err != nil {
		x.brokeInside(seen, err)
		return
	}
	_, _ = resp.Body.Read(text[:0:0]) // its end, which lets the connection rest
	passed(resp.Header, x.c.w.Header())
	_, _ = seen.Write(text)
	seen.atEnd()
	end := x.conclude(seen.outcome(), seen.summary())
	x.c.firstByte(x.h.cfg.Clock())
	x.c.sizes.reply = int64(len(text))
	x.h.measure(x.c, label(end.Outcome))
	x.c.writeBefore(x.h.cfg.Limits.Silence)
	x.c.w.WriteHeader(resp.StatusCode)
	_, _ = x.c.w.Write(text) // a client that has gone by now has no say in the outcome
}

// brokeInside ends an exchange that broke in its reply. One that was complete by then has ended
// well, whatever became of its connections.
func (x *exchange) brokeInside(seen *reply, err error) {
	if o := x.lease.outcome(); o == router.Succeeded || o == router.Aborted {
		x.h.measure(x.c, label(o))
		return
	}
	o := router.Ambiguous
	if cutByUs(x.ctx) || errors.Is(err, errClientGone) {
		o = router.Cancelled
	}
	x.tellBroken(x.conclude(o, seen.summary()))
}

// copy passes the reply's body on, until its end, an error of the engine, or errClientGone.
func (x *exchange) copy(resp *http.Response, seen *reply, eager bool) error {
	size := largePiece
	if seen.form == eventStream {
		size = smallPiece
	}
	piece := x.h.pieces.get(size)
	defer x.h.pieces.put(piece)
	for {
		n, err := resp.Body.Read(*piece)
		if n > 0 {
			x.silent.Reset(x.h.cfg.Limits.Silence)
			if sent := x.forward((*piece)[:n], seen, eager); sent != nil {
				x.cut(errClientGone)
				return sent
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// forward reads a piece in passing and sends it on.
func (x *exchange) forward(p []byte, seen *reply, eager bool) error {
	_, _ = seen.Write(p)
	if (seen.state == complete || seen.end == failed) && x.lease.outcome() == router.OutcomeNone {
		x.conclude(seen.outcome(), seen.summary())
	}
	if x.c.sizes.reply == 0 {
		x.c.firstByte(x.h.cfg.Clock())
	}
	x.c.sizes.reply += int64(len(p))
	x.c.writeBefore(x.h.cfg.Limits.Silence)
	if _, err := x.c.w.Write(p); err != nil {
		return errors.Join(errClientGone, err)
	}
	if eager {
		if err := x.c.out.Flush(); err != nil {
			return errors.Join(errClientGone, err)
		}
	}
	return nil
}
