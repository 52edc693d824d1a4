package access

import (
	"errors"
	"net/netip"
	"sync"
)

// room bounds the calls that wait for an answer of the API server: all of them, and those of one home, as
// door.Home has them, to as many as half of the places that are free yet. So one home alone has a third of all
// places at most, two a quarter each, and however many the others have, there is one for a newcomer until
// the last is taken.
type room struct {
	mu      sync.Mutex
	free    int                  // guarded by mu
	waiting map[netip.Prefix]int // guarded by mu; none is 0
}

// errCrowded: there is no place to wait in.
var errCrowded = errors.New("too many calls wait for the API server's answers, all together or from one address")

func newRoom(places int) *room { return &room{free: places, waiting: map[netip.Prefix]int{}} }

// enter takes a place, to be left, if there is one.
func (r *room) enter(who netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.waiting[who]
	if r.free == 0 || n > 0 && 2*n >= r.free {
		return false
	}
	r.free--
	r.waiting[who] = n + 1
	return true
}

// leave gives a place back.
func (r *room) leave(who netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free++
	if r.waiting[who]--; r.waiting[who] == 0 {
		delete(r.waiting, who)
	}
}
