package enginesim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/berthmaster/berthmaster/internal/enginesim/text"
)

// stream writes server-sent events. Its status and headers are sent with the first.
type stream struct {
	w http.ResponseWriter
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return &stream{w: w}
}

// send writes one event and hands it to the network. It fails when the client has gone.
func (o *stream) send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("enginesim: an event cannot be encoded: %v", err))
	}
	return o.raw("data: " + string(body) + "\n\n")
}

func (o *stream) done() error { return o.raw("data: [DONE]\n\n") }

func (o *stream) raw(text string) error {
	if _, err := o.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if err := http.NewResponseController(o.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("flush event: %w", err)
	}
	return nil
}

// fail ends the stream with an error: HTTP 200 is out, or is about to be.
func (o *stream) fail(err error) error {
	var api *apiError
	if !errors.As(err, &api) {
		return err
	}
	if err := o.send(api.streamBody()); err != nil {
		return err
	}
	return o.done()
}

// increment is what is new about one sequence since the last event about it.
type increment struct {
	index int
	view  view
	from  int    // the first new token
	new   string // its text and that of those after it
	all   string // the text of all tokens
}

// follow calls f with each increment of each sequence until all have ended.
func (x *execution) follow(ctx context.Context, f func(increment) error) error {
	merged := make(chan int, len(x.seqs)) // indices of sequences with something new
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, q := range x.seqs {
		go relay(ctx, q.wake, merged, i)
	}
	told := make([]told, len(x.seqs))
	for left := len(x.seqs); left > 0; {
		select {
		case i := <-merged:
			over, err := x.tell(i, &told[i], f)
			if err != nil {
				return err
			}
			if over {
				left--
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-x.server.gone:
			return errGone
		}
	}
	return nil
}

// told is what a stream has said about one sequence.
type told struct {
	tokens int // streamEnded after its last event
	text   strings.Builder
}

// tell calls f if there is something new about sequence i, and reports whether that was the last of it.
func (x *execution) tell(i int, t *told, f func(increment) error) (over bool, err error) {
	v := x.look(x.seqs[i])
	if t.tokens == streamEnded || v.status == seqActive && v.tokens == t.tokens {
		return false, nil
	}
	from, before := t.tokens, t.text.Len()
	text.Write(&t.text, x.seqs[i].seed, from, v.tokens)
	all := trimStop(t.text.String(), v.reason)
	t.tokens = v.tokens
	if v.status != seqActive {
		t.tokens, over = streamEnded, true
	}
	return over, f(increment{index: i, view: v, from: from, new: all[min(before, len(all)):], all: all})
}

// streamEnded marks, in place of a number of tokens, a sequence whose last event is out.
const streamEnded = -1

// relay turns wake-ups of one sequence into its index on a channel that all share.
func relay(ctx context.Context, wake <-chan struct{}, merged chan<- int, i int) {
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
		select {
		case merged <- i:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) streamGenerate(w http.ResponseWriter, r *http.Request, q *inquiry) error {
	out := newStream(w)
	x, err := s.execute(r.Context(), q.plans)
	if err != nil {
		return out.fail(err)
	}
	defer x.leave()
	err = x.follow(r.Context(), func(in increment) error {
		said, from := in.all, 0
		if s.cfg.Streaming == Incremental {
			said, from = in.new, in.from
		}
		event := s.generateReply(q, in.index, in.view, said, from)
		if q.batch {
			event["index"] = in.index
		}
		return out.send(event)
	})
	if err != nil {
		return err
	}
	return out.done()
}
