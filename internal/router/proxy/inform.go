package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// inform passes a call on that generates nothing, to any admissible backend. If nothing was sent
// it tries the next one.
func (h *Handler) inform(c *call) {
	body := h.newSpool()
	defer body.free()
	if err := h.copyBody(c, body); err != nil {
		if errors.Is(err, errBodyTooLarge) {
			err = tooLarge(body.max)
		}
		h.giveUpReading(c, err)
		return
	}
	c.sizes.request = body.size
	for range attempts {
		_, url, err := c.table.Anyone(h.turn.Add(1))
		if err != nil {
			h.giveUp(c, err)
			return
		}
		resp, err := h.cfg.Transport.Do(c.r.Context(), url, h.question(c, body))
		switch {
		case err == nil:
			h.tell(c, resp)
			return
		case wire.WrittenOf(err) == wire.PerhapsSome:
			h.giveUp(c, &router.Refusal{Reason: reasonUnreachable, RetryAfter: time.Second, Detail: "the backend broke the exchange off"})
			return
		}
	}
	h.giveUp(c, &router.Refusal{Reason: reasonUnreachable, RetryAfter: time.Second, Detail: "no backend took the connection"})
}

func (h *Handler) question(c *call, body *spool) *wire.Request {
	head := make(http.Header, len(c.r.Header)+1)
	passed(c.r.Header, head)
	h.identify(c, head)
	q := &wire.Request{Method: c.r.Method, Target: target(c), Header: head}
	if body.size > 0 {
		q.Body, q.Length = body.part(0, body.size), body.size
	}
	return q
}

// tell passes an answer on.
func (h *Handler) tell(c *call, resp *http.Response) {
	defer resp.Body.Close()
	if c.route.tells != nil {
		h.tellPart(c, resp)
		return
	}
	passed(resp.Header, c.w.Header())
	c.writeBefore(h.cfg.Limits.Silence)
	c.w.WriteHeader(resp.StatusCode)
	piece := h.pieces.get(largePiece)
	defer h.pieces.put(piece)
	n, err := io.CopyBuffer(c.w, resp.Body, *piece)
	c.sizes.reply = n
	h.measure(c, labelInformed)
	if err != nil {
		panic(http.ErrAbortHandler) // the answer is cut, and the client has to see that
	}
}

// sievedReply bounds an answer of which a part is passed on, in bytes: it is read whole.
const sievedReply = 4 << 20

// tellPart passes on what callers may know of an answer. What is no success has nothing that they may: its status
// says enough. A HEAD has nothing but a status either way.
func (h *Handler) tellPart(c *call, resp *http.Response) {
	if resp.StatusCode != http.StatusOK || c.r.Method == http.MethodHead {
		c.w.WriteHeader(resp.StatusCode)
		h.measure(c, labelInformed)
		return
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, sievedReply+1))
	if err == nil && len(text) > sievedReply {
		err = errors.New("the answer is too long")
	}
	part, ok := c.route.tells.of(text)
	if err != nil || !ok {
		h.giveUp(c, &router.Refusal{Reason: reasonUnreadable, RetryAfter: time.Second,
			Detail: "the backend answered " + c.engine + " with what is no JSON object, or cut, or too long"})
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.sizes.reply = int64(len(part))
	h.measure(c, labelInformed)
	c.writeBefore(h.cfg.Limits.Silence)
	_, _ = c.w.Write(part) // whoever asked may be gone
}

// health answers 200 while a backend serves.
func (h *Handler) health(c *call) {
	if _, _, err := c.table.Anyone(0); err != nil {
		h.refuse(c, err)
		return
	}
	c.w.WriteHeader(http.StatusOK)
	h.measure(c, labelInformed)
}
