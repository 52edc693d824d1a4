package door

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// check returns the first invariant that is broken.
func (s *guests) check() error {
	open, resting := 0, 0
	for address, h := range s.homes {
		open += h.open
		resting += h.resting.Len()
		switch {
		case h.address != address, h.open == 0, h.resting.Len() > h.open:
			return fmt.Errorf("%v: %d open, %d rest", address, h.open, h.resting.Len())
		case (h.place >= 0) != (h.resting.Len() > 0):
			return fmt.Errorf("%v: %d rest, and its place in the crowd is %d", address, h.resting.Len(), h.place)
		case h.place >= 0 && s.crowd[h.place] != h:
			return fmt.Errorf("%v is not at its place in the crowd", address)
		}
	}
	if open != s.open || open > s.most {
		return fmt.Errorf("%d are open, %d are counted, %d may be", open, s.open, s.most)
	}
	return nil
}

// model is the same by looking at everybody.
type model struct {
	steps  int
	inside map[*guest]*seen
}

type seen struct {
	address netip.Prefix
	works   bool
	rested  int
}

// victim is who has to go: of the address with the most that rest, the longest resting.
func (m *model) victim() *guest {
	resting := map[netip.Prefix]int{}
	for _, v := range m.inside {
		if !v.works {
			resting[v.address]++
		}
	}
	var out *guest
	for g, v := range m.inside {
		if v.works {
			continue
		}
		if out == nil {
			out = g
			continue
		}
		best := m.inside[out]
		if a, b := resting[v.address], resting[best.address]; a > b || a == b && v.rested < best.rested {
			out = g
		}
	}
	return out
}

func TestWhoHasToGoIsOfTheAddressThatRestsMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newGuests(rapid.IntRange(1, 8).Draw(t, "room"))
		m := model{inside: map[*guest]*seen{}}
		var known []*guest
		pick := func(t *rapid.T) *guest {
			if len(known) == 0 {
				t.Skip("nobody has come yet")
			}
			return rapid.SampledFrom(known).Draw(t, "who")
		}
		t.Repeat(map[string]func(*rapid.T){
			"comes": func(t *rapid.T) {
				address := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "from"))}), 32)
				full, victim := len(m.inside) == s.most, m.victim()
				in, displaced := s.admit(address, nil)
				switch {
				case !full && (in == nil || displaced != nil):
					t.Fatalf("there is room: in %v, displaced %v", in, displaced)
				case full && displaced != victim:
					t.Fatalf("%v had to go, want %v", displaced, victim)
				case full && (in == nil) != (victim == nil):
					t.Fatalf("full, nobody rests: %t, let in: %t", victim == nil, in != nil)
				}
				delete(m.inside, displaced)
				if in != nil {
					m.steps++
					m.inside[in], known = &seen{address: address, rested: m.steps}, append(known, in)
				}
			},
			"works": func(t *rapid.T) {
				g := pick(t)
				s.move(g, works)
				if v := m.inside[g]; v != nil {
					v.works = true
				}
			},
			"rests": func(t *rapid.T) {
				g := pick(t)
				s.move(g, rests)
				if v := m.inside[g]; v != nil && v.works {
					m.steps++
					v.works, v.rested = false, m.steps
				}
			},
			"leaves": func(t *rapid.T) {
				g := pick(t)
				s.move(g, gone)
				delete(m.inside, g)
			},
			"": func(t *rapid.T) {
				if err := s.check(); err != nil {
					t.Fatal(err)
				}
				if s.open != len(m.inside) {
					t.Fatalf("%d are inside, want %d", s.open, len(m.inside))
				}
			},
		})
		for _, g := range known {
			s.move(g, gone)
		}
		if s.open != 0 || len(s.homes) != 0 || len(s.crowd) != 0 {
			t.Fatalf("all have left, and %d, %d homes, %d of them crowded are kept", s.open, len(s.homes), len(s.crowd))
		}
	})
}
