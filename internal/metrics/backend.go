package metrics

import (
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

// berth is all lives of one backend's name together: what is left on an earlier life of it is still
// on the same machine. Labels have no incarnation, since a cluster makes new ones without end.
type berth struct {
	outstanding, held, sessions int64
	unknown                     bool
	// member is the life that is in the pool now; nil: all of them have retired.
	member *router.BackendSnapshot
	// engine is what the engines' schedulers held; meaningful if told.
	engine int64
	told   bool
}

func (b *berth) add(life *router.BackendSnapshot, seen prober.Observation) {
	b.outstanding += life.Outstanding
	b.held += life.Held
	b.sessions += life.Sessions
	b.unknown = b.unknown || life.UnknownLoad
	if life.Retired {
		return
	}
	b.member = life
	b.told = seen.Verdict == prober.Healthy && seen.EngineTotal >= 0
	b.engine = seen.EngineTotal
}

func berths(lives []router.BackendSnapshot, seen map[string]prober.Observation) map[router.BackendName]*berth {
	out := make(map[router.BackendName]*berth, len(lives))
	for i := range lives {
		life := &lives[i]
		b := out[life.Name]
		if b == nil {
			b = &berth{}
			out[life.Name] = b
		}
		b.add(life, seen[string(life.Incarnation)])
	}
	return out
}

func (s sheet) backends(key router.PoolKey, v *router.Snapshot, seen map[string]prober.Observation) {
	want := wanted(v)
	for name, b := range berths(v.Backends, seen) {
		labels := []string{key.Namespace, key.Name, string(name)}
		s.put(backendOutstanding, float64(b.outstanding), labels...)
		s.put(backendHeld, float64(b.held), labels...)
		s.put(backendSessions, float64(b.sessions), labels...)
		s.put(backendUnknown, yes(b.unknown), labels...)
		if b.told {
			s.put(backendPhantom, float64(b.outstanding-b.engine), labels...)
		}
		s.member(b.member, want, labels)
	}
}

// member tells what only a member of the pool has.
func (s sheet) member(b *router.BackendSnapshot, want router.Version, labels []string) {
	if b == nil {
		return
	}
	s.put(backendCapacity, float64(b.Capacity), labels...)
	s.put(backendState, 1, labels[0], labels[1], labels[2], stateOf(b))
	if want != "" {
		s.put(backendCurrent, yes(progressOf(b.Version, want) == updated), labels...)
	}
}
