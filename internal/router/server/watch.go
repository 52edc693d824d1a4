package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// watch is GET watch: server-sent events, resumed after Last-Event-ID where the history still
// has it, else opened by the whole state. With ?every=SECONDS the state is told again that often,
// for those who look at figures, which change without events.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, c *call) {
	every, err := interval(r.URL.Query().Get("every"))
	if err != nil {
		s.refuse(w, c.failed(err))
		return
	}
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
	out := &stream{w: w, rc: http.NewResponseController(w), patience: s.limits.Write, pool: c.pool, room: s.large, feed: f, every: every}
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
	again, stop := out.again()
	defer stop()
	for {
		more, err := out.catchUp()
		if err != nil {
			return
		}
		select {
		case <-more:
		case <-again:
			out.due = true
		case <-beat.C:
			if err = s.authorize(r, c.pool, ""); err == nil {
				err = out.heartbeat()
			}
		case <-ctx.Done():
			if errors.Is(s.cutShort(c), router.ErrPoolNotFound) {
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
	pool     router.PoolKey
	room     *room
	feed     *feed
	// every is how often the state is told again; 0: only where events are missing.
	every time.Duration
	// at is the number of the last event sent, if synced; else the client has nothing that
	// can be added to.
	at     uint64
	synced bool
	// due: the state is to be told again, after the events before it.
	due bool
}

// again ticks when the state is due again.
func (v *stream) again() (<-chan time.Time, func()) {
	if v.every == 0 {
		return nil, func() {}
	}
	tick := time.NewTicker(v.every)
	return tick.C, tick.Stop
}

// interval reads ?every=; none is 0.
func interval(asked string) (time.Duration, error) {
	if asked == "" {
		return 0, nil
	}
	const most = 3600
	seconds, err := strconv.Atoi(asked)
	if err != nil || seconds < 1 || seconds > most {
		return 0, invalid("every", "every must be a number of seconds between 1 and "+strconv.Itoa(most))
	}
	return time.Duration(seconds) * time.Second, nil
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
	if v.due && err == nil {
		// It may be newer than the last event sent, which then is told once more: none is left out.
		e, _, _ := v.feed.state()
		v.due, err = false, v.send(e)
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

// put writes text. While a long one is under way it takes of the room that is shared; without any the stream ends, and
// the client resumes it.
func (v *stream) put(text string) error {
	if n := int64(len(text)); n > deskBytes {
		if err := v.room.take(v.pool, n); err != nil {
			return err
		}
		defer v.room.back(v.pool, n)
	}
	_ = v.rc.SetWriteDeadline(time.Now().Add(v.patience))
	_, err := v.w.Write([]byte(text))
	return err
}

func (v *stream) flush() error {
	_ = v.rc.SetWriteDeadline(time.Now().Add(v.patience))
	return v.rc.Flush()
}
