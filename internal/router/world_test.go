package router

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// world is everything outside the table that a property test needs to judge it: the engines
// with what really runs on them, the clients with what they may still write, the operator with
// what the spec says, and the clock. It never looks into the table to learn any of that.
type world struct {
	t    *rapid.T
	tab  *Table
	now  time.Time
	term Term

	fleet   Fleet
	engines map[Incarnation]*engine
	calls   []*call
	mail    []letter
	// granted is the rid that each request id was given, by the client's knowledge.
	granted map[RequestID]RID
	// windows is the largest start window ever granted under.
	windows time.Duration
	// authority is when leadership ends; the zero time: it does not.
	authority time.Time
	lives     int
	rids      *counter
	// vouched are the processes whose end was reported to this table.
	vouched map[Incarnation]struct{}
	// served is when each waiter that has its answer got it.
	served map[*waiter]time.Time
	// stood is the lane that each waiter stood in after the last step.
	stood map[*waiter]lane
	// placed is how many publications each session's last turn boundary had seen.
	placed map[SessionID]int64
}

// counter is a source of rids that are all different and the same in every run.
type counter struct{ n uint64 }

func (c *counter) Read(p []byte) (int, error) {
	c.n++
	clear(p)
	binary.BigEndian.PutUint64(p, c.n)
	return len(p), nil
}

// worldEpoch is when every run begins.
var worldEpoch = time.Unix(1_000_000, 0)

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: worldEpoch, engines: map[Incarnation]*engine{}, granted: map[RequestID]RID{}, served: map[*waiter]time.Time{}, stood: map[*waiter]lane{}, rids: &counter{},
		fleet: Fleet{
			Epoch: 1, Leasing: LeasingOpen, Config: DefaultConfig(),
			Senders: []Sender{{Name: "train", Access: AccessOpen}, {Name: "eval", Access: AccessOpen}},
		},
	}
	for _, name := range []BackendName{"a", "b"} {
		w.addMember(name)
	}
	w.drawConfig()
	w.fleet.Published = choose(w, "published", []Version{"", "v1"})
	w.begin(Takeover{})
	return w
}

// begin makes the table of a new term, as a manager does that has just been elected.
func (w *world) begin(past Takeover) {
	w.term++
	w.tab = NewTable("pool", w.rids, w.now)
	w.mail, w.authority, w.vouched = nil, time.Time{}, map[Incarnation]struct{}{}
	w.placed = map[SessionID]int64{}
	for _, e := range w.engines {
		e.seen, e.met, e.told, e.doubted = Observation{}, nil, "", 0
	}
	w.followed()
	if rapid.Bool().Draw(w.t, "lead before the first fleet") {
		w.tab.Lead(w.term, past, w.now)
		w.apply()
		return
	}
	w.apply()
	w.tab.Lead(w.term, past, w.now)
}

// apply hands the operator's fleet over, with what the controller knows of each member's load.
func (w *world) apply() {
	f := w.fleet
	f.Members = slices.Clone(w.fleet.Members)
	for i := range f.Members {
		if w.engines[f.Members[i].Incarnation].born < w.term {
			f.Members[i].Load = LoadUnknown
		}
	}
	w.windows = max(w.windows, f.Config.StartWindow)
	if err := w.tab.Apply(f, w.now); err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	w.meet()
}

// meet notes which incarnations the table knows anew, and which have come back to the fleet: it
// remembers nothing of the health of either.
func (w *world) meet() {
	for inc, e := range w.engines {
		b := w.tab.state.backends[inc]
		switch {
		case b != e.met:
			e.met, e.seen, e.told, e.doubted = b, Observation{}, "", 0
		case e.fleet == outOfFleet && w.member(inc) != nil:
			e.seen = Observation{Seq: e.seen.Seq, Capacity: e.seen.Capacity}
		}
		e.fleet = inFleet
		if w.member(inc) == nil {
			e.fleet = outOfFleet
		}
	}
}

func (w *world) addMember(name BackendName) *Member {
	w.lives++
	inc := Incarnation(fmt.Sprintf("%s/%d", name, w.lives))
	w.engines[inc] = &engine{inc: inc, born: w.term, running: map[RID]*call{}, version: "v1", state: engineAlive}
	if w.term == 0 {
		w.engines[inc].born = 1
	}
	w.fleet.Members = append(w.fleet.Members, Member{
		Name: name, Incarnation: inc, URL: "http://" + string(name), FallbackCapacity: 4,
	})
	return &w.fleet.Members[len(w.fleet.Members)-1]
}

func (w *world) member(inc Incarnation) *Member {
	for i := range w.fleet.Members {
		if w.fleet.Members[i].Incarnation == inc {
			return &w.fleet.Members[i]
		}
	}
	return nil
}

func (w *world) sender(name SenderName) *Sender {
	for i := range w.fleet.Senders {
		if w.fleet.Senders[i].Name == name {
			return &w.fleet.Senders[i]
		}
	}
	return nil
}

// incarnations lists every engine that ever was, in a fixed order.
func (w *world) incarnations() []Incarnation { return slices.Sorted(maps.Keys(w.engines)) }

// choose draws one of a list that is not empty.
func choose[T any](w *world, label string, from []T) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(w.t, label)]
}

// oneIn is true about once in n.
func oneIn(w *world, n int, label string) bool {
	return rapid.IntRange(1, n).Draw(w.t, label) == n
}
