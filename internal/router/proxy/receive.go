package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/jsonscan"
)

// newSpool is for the body of one request; the caller frees it.
func (h *Handler) newSpool() *spool {
	return &spool{store: h.store, dir: h.cfg.Limits.SpoolDir, max: h.cfg.Limits.BodyBytes}
}

// receive spools the body and reads its fields. The caller closes the spool, also after an error.
func (h *Handler) receive(c *call, body *spool) (*fields, error) {
	if e := c.r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, &router.Refusal{Reason: reasonUnsupported, Field: "Content-Encoding", Detail: "engines take bodies without an encoding"}
	}
	if c.r.ContentLength > body.max {
		return nil, tooLarge(body.max)
	}
	f := newFields(c.route)
	scanner := jsonscan.New(f)
	err := h.copyBody(c, io.MultiWriter(body, scanner))
	if err == nil {
		err = scanner.Close()
	}
	switch {
	case errors.Is(err, errBodyTooLarge):
		return nil, tooLarge(body.max)
	case errors.Is(err, jsonscan.ErrSyntax):
		return nil, &router.Refusal{Reason: router.ReasonInvalid, Field: "body", Detail: err.Error()}
	case err != nil:
		return nil, err
	case f.shape != anObject:
		return nil, &router.Refusal{Reason: router.ReasonInvalid, Field: "body", Detail: "the body must be a JSON object"}
	case f.trouble != "":
		return nil, &router.Refusal{Reason: router.ReasonInvalid, Field: "body", Detail: f.trouble}
	}
	c.sizes.request = body.size
	return f, nil
}

func tooLarge(most int64) error {
	return &router.Refusal{Reason: reasonTooLarge, Field: "body", Detail: "the body is longer than " + strconv.FormatInt(most, 10) + " bytes"}
}

// Bounds of what is read of a body that is refused.
const (
	lingerBytes = 16 << 20
	lingerTime  = 10 * time.Second
)

// linger reads on for a while in a body that is refused: a client that is still sending when its
// connection is closed would hear of a reset, and not the reason.
func (c *call) linger(silence time.Duration) {
	c.readBefore(silence)
	// With a body that is not at its end the deadline stands: the server reads on by itself, and for how long it
	// would wait for a client that has stopped sending, nobody says.
	if _, err := io.CopyN(io.Discard, c.r.Body, lingerBytes); errors.Is(err, io.EOF) {
		_ = c.out.SetReadDeadline(time.Time{})
	}
}

// copyBody reads the body as fast as it comes, for as long as it comes. Afterwards nothing limits
// the wait for the client, so that only its hanging up is taken for that.
func (h *Handler) copyBody(c *call, to io.Writer) error {
	piece := h.pieces.get(largePiece)
	defer h.pieces.put(piece)
	for {
		c.readBefore(h.cfg.Limits.Upload)
		n, err := c.r.Body.Read(*piece)
		if n > 0 {
			if _, err := to.Write((*piece)[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			_ = c.out.SetReadDeadline(time.Time{}) // not every server has deadlines
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errStopped
		}
		if err != nil {
			return errors.Join(errClientGone, err)
		}
	}
}

// errStopped: the client was silent in the middle of its body for longer than Limits.Upload.
var errStopped = errors.New("the body stopped coming")

func stopped(after time.Duration) error {
	return &router.Refusal{Reason: reasonTimeout, Field: "body", Outcome: router.NotSent,
		Detail: "nothing of the body came for " + after.String() + "; the request was not sent"}
}

// readBefore limits the client's silence. Deadlines of connections are by the system's clock.
func (c *call) readBefore(d time.Duration) { _ = c.out.SetReadDeadline(time.Now().Add(d)) }

// writeBefore limits how long a client may leave what it is sent unread, to within deadlineStep:
// to move the deadline for every event of a stream would cost more than the event.
func (c *call) writeBefore(d time.Duration) {
	now := time.Now()
	if now.Before(c.moveDeadline) {
		return
	}
	c.moveDeadline = now.Add(deadlineStep)
	_ = c.out.SetWriteDeadline(now.Add(d + deadlineStep))
}

const deadlineStep = time.Minute

// hopByHop are headers of one connection, and those that are for the proxy alone: a client's
// credentials, and encodings in which a reply could not be read.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Authorization", "Cookie", "X-Api-Key", "Accept-Encoding":
		return true
	}
	return false
}

// passed copies the headers that go on, and none that a Connection header names. Engines let pages of every origin
// read their replies, which is for them to say about themselves, and not about this API.
func passed(from, to http.Header) {
	named := map[string]bool{}
	for _, line := range from["Connection"] {
		for _, name := range splitList(line) {
			named[http.CanonicalHeaderKey(name)] = true
		}
	}
	for name, values := range from {
		if !hopByHop(name) && !named[name] && !strings.HasPrefix(name, "Access-Control-") {
			to[name] = values
		}
	}
}
