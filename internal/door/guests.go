package door

import (
	"container/heap"
	"container/list"
	"net/netip"
)

// guests are the connections of one port. Its methods know no lock and no clock: what rests longest is
// told by the order in which things happened.
type guests struct {
	most int
	open int
	// homes have the guests of each address; none is empty.
	homes map[netip.Prefix]*home
	// crowd are the homes with guests that rest, the one with the most of them first.
	crowd     crowd
	steps     uint64
	refused   int64
	displaced int64
}

// home is an address with at least one guest.
type home struct {
	address netip.Prefix
	open    int
	// resting are its guests that rest, the longest resting first.
	resting list.List
	// place is where it is in the crowd; -1: nowhere, since nobody of it rests.
	place int
}

// guest is one connection.
type guest struct {
	home  *home
	phase phase
	// place is where it is among those of its home that rest; nil: it does not.
	place *list.Element
	// rested is the step at which it began to.
	rested uint64
	// leave closes the connection.
	leave func()
}

// phase is where a connection is in its life.
type phase uint8

const (
	// rests: no call of it is being answered.
	rests phase = iota
	// works: one is.
	works
	// gone: it is closed, or about to be.
	gone
)

func newGuests(most int) guests { return guests{most: most, homes: map[netip.Prefix]*home{}} }

// admit lets a connection in, which rests. displaced has to go for it, unless it is nil. With no room that
// could be made the newcomer is refused, and in is nil.
func (s *guests) admit(address netip.Prefix, leave func()) (in, displaced *guest) {
	if s.open >= s.most {
		if len(s.crowd) == 0 {
			s.refused++
			return nil, nil
		}
		displaced = s.crowd[0].resting.Front().Value.(*guest)
		s.remove(displaced)
		s.displaced++
	}
	h := s.homes[address]
	if h == nil {
		h = &home{address: address, place: -1}
		s.homes[address] = h
	}
	h.open++
	s.open++
	in = &guest{home: h, leave: leave}
	s.lieDown(in)
	return in, displaced
}

// move takes a guest to another phase of its life. Who is gone stays gone.
func (s *guests) move(g *guest, to phase) {
	if g.phase == to || g.phase == gone {
		return
	}
	switch to {
	case rests:
		g.phase = rests
		s.lieDown(g)
	case works:
		s.getUp(g)
		g.phase = works
	case gone:
		s.remove(g)
	}
}

// remove takes a guest out.
func (s *guests) remove(g *guest) {
	s.getUp(g)
	g.phase = gone
	s.open--
	if g.home.open--; g.home.open == 0 {
		delete(s.homes, g.home.address)
	}
}

// lieDown puts a guest behind those of its home that rest.
func (s *guests) lieDown(g *guest) {
	s.steps++
	g.rested = s.steps
	g.place = g.home.resting.PushBack(g)
	s.reorder(g.home)
}

// getUp takes a guest from those that rest, if it is one of them.
func (s *guests) getUp(g *guest) {
	if g.place == nil {
		return
	}
	g.home.resting.Remove(g.place)
	g.place = nil
	s.reorder(g.home)
}

// reorder finds the place of a home in the crowd after a change.
func (s *guests) reorder(h *home) {
	switch {
	case h.place < 0:
		heap.Push(&s.crowd, h)
	case h.resting.Len() == 0:
		heap.Remove(&s.crowd, h.place)
	default:
		heap.Fix(&s.crowd, h.place)
	}
}
