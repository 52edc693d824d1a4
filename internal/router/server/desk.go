package server

import (
	"net/http"
	"strconv"
	"sync"
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
}

// desks lends desks. A call that waits has given its desk back before.
type desks struct {
	free *sync.Pool
	// json is the Content-Type of answers, shared by all of them; net/http only reads it.
	json []string
}

func newDesks() desks {
	return desks{free: &sync.Pool{New: func() any { return new(desk) }}, json: []string{"application/json"}}
}

func (v *desks) take() *desk { return v.free.Get().(*desk) }

// back takes a desk back; nothing may point into it any more.
func (v *desks) back(d *desk) { v.free.Put(d) }

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
