package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// watch is GET watch: server-sent events, resumed after Last-Event-ID where the history still
// has it, else opened by the whole state.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, c *call) {
	leave, ok := s.watchers.enter(c.pool)
	if !ok {
		s.refuse(w, &router.Refusal{Reason: router.ReasonContended, RetryAfter: time.Second, Detail: "this pool has as many watchers as it may"})
		return
	}
	defer leave()
	f, part, ok := s.feeds.join(c.table)
	if !ok {
		s.refuse(w, s.cutShort(c))
		return
	}
	defer part()
	ctx, done := s.waiting(w, r, c)
	defer done()
	out := &stream{w: w, rc: http.NewResponseController(w), patience: s.limits.Write, feed: f}
	out.at, out.synced = f.resume(r.Header.Get("Last-Event-ID"))
	s.stream(ctx, r, c, out)
}

// stream writes events until the client goes, loses its rights, the pool goes or the server stops.
func (s *Server) stream(ctx context.Context, r *http.Request, c *call, out *stream) {
	h := out.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // or nginx would hold events back
	out.w.WriteHeader(http.StatusOK)
	beat := time.NewTicker(s.limits.Heartbeat)
	defer beat.Stop()
	for {
		more, err := out.catchUp()
		if err != nil {
			return
		}
		select {
		case <-more:
		case <-beat.C:
			if err = s.authorize(r, c.pool, ""); err == nil {
				err = out.heartbeat()
			}
		case <-ctx.Done():
			if c.table.Lifetime().Err() != nil {
				_ = out.send(event{Type: eventPoolGone}) // the stream ends either way
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// stream is one client's end of a feed. Each write is given patience, so that a client that
// never reads holds nothing for long.
type stream struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	feed     *feed
	// at is the number of the last event sent, if synced; else the client has nothing that
	// can be added to.
	at     uint64
	synced bool
}

// catchUp sends what the client has not seen: the events since, or the whole state where they
// are not known. more is closed once there is something else to send.
func (v *stream) catchUp() (more <-chan struct{}, err error) {
	news, more, ok := v.feed.after(v.at)
	if !v.synced || !ok {
		var e event
		e, v.at, more = v.feed.state()
		v.synced, news = true, nil
		err = v.send(e)
	}
	for i := 0; i < len(news) && err == nil; i++ {
		v.at++
		err = v.send(news[i])
	}
	if err != nil {
		return nil, err
	}
	return more, v.flush()
}

// send writes an event under the number that the client has reached.
func (v *stream) send(e event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return v.put("id: " + v.feed.id(v.at) + "\nevent: " + string(e.Type) + "\ndata: " + string(data) + "\n\n")
}

// heartbeat is a comment: clients and proxies see that the stream lives.
func (v *stream) heartbeat() error {
	if err := v.put(": heartbeat\n\n"); err != nil {
		return err
	}
	return v.flush()
}

func (v *stream) put(text string) error {
	_ = v.rc.SetWriteDeadline(time.Now().Add(v.patience))
	_, err := v.w.Write([]byte(text))
	return err
}

func (v *stream) flush() error {
	_ = v.rc.SetWriteDeadline(time.Now().Add(v.patience))
	return v.rc.Flush()
}
