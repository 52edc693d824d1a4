package routertest

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Snapshot is the table's own.
func (p *Pool) Snapshot() router.Snapshot { return p.Table.Snapshot(p.now) }

// Backend is what the table shows of an incarnation; the test ends if it shows nothing.
func (p *Pool) Backend(inc router.Incarnation) router.BackendSnapshot {
	p.t.Helper()
	for _, b := range p.Snapshot().Backends {
		if b.Incarnation == inc {
			return b
		}
	}
	p.t.Fatalf("the table knows no incarnation %s", inc)
	return router.BackendSnapshot{}
}

// Knows reports whether the table keeps anything of an incarnation.
func (p *Pool) Knows(inc router.Incarnation) bool {
	for _, b := range p.Snapshot().Backends {
		if b.Incarnation == inc {
			return true
		}
	}
	return false
}

// Sender is what the table shows of a sender; the test ends if it shows nothing.
func (p *Pool) Sender(name router.SenderName) router.SenderSnapshot {
	p.t.Helper()
	for _, s := range p.Snapshot().Senders {
		if s.Name == name {
			return s
		}
	}
	p.t.Fatalf("the table knows no sender %s", name)
	return router.SenderSnapshot{}
}

// SetMember changes the member of that name and applies the fleet.
func (p *Pool) SetMember(name router.BackendName, change func(*router.Member)) {
	p.t.Helper()
	p.Change(func(f *router.Fleet) {
		for i := range f.Members {
			if f.Members[i].Name == name {
				change(&f.Members[i])
			}
		}
	})
}

// SetSender changes the sender of that name and applies the fleet.
func (p *Pool) SetSender(name router.SenderName, change func(*router.Sender)) {
	p.t.Helper()
	p.Change(func(f *router.Fleet) {
		for i := range f.Senders {
			if f.Senders[i].Name == name {
				change(&f.Senders[i])
			}
		}
	})
}

// Settle does the table's chores for the given time as engines would on which nothing runs:
// aborts are answered, and every rank is empty.
func (p *Pool) Settle(during time.Duration) {
	for end := p.now.Add(during); p.now.Before(end); {
		p.Chores(0)
		p.Pass(600 * time.Millisecond)
	}
}

// Chores does what the table wants done now, by engines on each of which so many executions
// run; it returns the chores.
func (p *Pool) Chores(running int64) []router.Chore {
	list := p.Table.Chores(p.now)
	for _, c := range list {
		p.clock++
		if len(c.Abort) > 0 {
			p.Table.AbortAnswered(c.Incarnation, c.Abort, p.now)
		}
		if c.ReadLoads {
			p.Table.LoadsRead(c.Incarnation, c.Stamp, []router.RankLoad{{Clock: p.clock, Total: running}}, p.now)
		}
	}
	return list
}
