package server

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/berthmaster/berthmaster/internal/router"
)

// deskBytes is more than the body or the answer of nearly every lease call.
const deskBytes = 4 << 10

// wholeAnswer is the longest answer that net/http itself gives a Content-Length.
const wholeAnswer = 2000

// desk is memory for one call: its body, what the body says, and later its answer.
type desk struct {
	room    [deskBytes]byte
	reader  jsonReader
	acquire acquireBody
	renew   renewBody
	release releaseBody

	// pool and held are whose memory the call has taken of the shared room, and how much.
	pool router.PoolKey
	held int64
}

// desks lends desks. A call that waits has given its desk back before.
type desks struct {
	free *sync.Pool
	// room is for what a desk is too small for.
	room *room
	// json is the Content-Type of answers, shared by all of them; net/http only reads it.
	json []string
}

func newDesks(shared *room) desks {
	return desks{room: shared, free: &sync.Pool{New: func() any { return new(desk) }}, json: []string{"application/json"}}
}

func (v *desks) take() *desk { return v.free.Get().(*desk) }

// hold has the call at d take n more bytes of the shared room until the desk is given back.
func (v *desks) hold(d *desk, pool router.PoolKey, n int64) error {
	if err := v.room.take(pool, n); err != nil {
		return err
	}
	d.pool = pool
	d.held += n
	return nil
}

// back takes a desk back, and what the call held; nothing may point into either any more.
func (v *desks) back(d *desk) {
	if d.held > 0 {
		v.room.back(d.pool, d.held)
		d.pool, d.held = router.PoolKey{}, 0
	}
	v.free.Put(d)
}

// write sends an answer that is JSON already.
func (v *desks) write(w http.ResponseWriter, status int, raw []byte) {
	h := w.Header()
	h["Content-Type"] = v.json
	if len(raw) > wholeAnswer {
		h.Set("Content-Length", strconv.Itoa(len(raw)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that has gone does not read its answer
}
