package election

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// Role is what a replica is to its clients.
type Role int

// The roles. The zero value is the one that promises nothing.
const (
	// RoleNone: nobody is known who may answer. That is so, too, for one that had authority last and has not
	// asked since who has it: a process that stood still wakes with the callers of before at its door.
	RoleNone Role = iota
	// RoleLeads: this replica has authority.
	RoleLeads
	// RoleLapsed: this replica had authority last, has asked since, and nobody is known who has it now.
	RoleLapsed
	// RoleFollows: another replica is the leader, as far as is known.
	RoleFollows
)

// Standing is the state of the election as this replica knows it.
type Standing struct {
	Role Role
	// Leader is who leads, with RoleFollows.
	Leader Identity
	// Reign is done once this replica's present reign is over, or, with RoleFollows, once the lock
	// names another; with the other roles always.
	Reign context.Context
}

// Candidate is this replica in the election.
type Candidate struct {
	config  Config
	elector *leaderelection.LeaderElector

	mu sync.Mutex
	// reign, until, over and end are the latest reign, its end as far as is known, its context and
	// what ends that. Guarded by mu.
	reign int64
	until time.Time
	over  context.Context
	end   context.CancelFunc
	timer *time.Timer // ends the reign when nothing renews it; guarded by mu
	// holder is who the lock named last; empty: nobody. Guarded by mu.
	holder string
	// asked is when the latest look at the lock began that has come to an end, whatever it saw. Guarded by mu.
	asked time.Time
	// named is done once holder is another; rename ends it. Guarded by mu.
	named  context.Context
	rename context.CancelFunc
}

// New returns a candidate that does not run yet.
func New(config Config) (*Candidate, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	c := &Candidate{config: config}
	c.over, c.end = context.WithCancel(context.Background())
	c.end() // there is no reign yet
	c.named, c.rename = context.WithCancel(context.Background())
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &watchedLock{Interface: config.Lock, candidate: c}, Name: "berthmaster",
		LeaseDuration: config.LeaseDuration, RenewDeadline: config.RenewDeadline, RetryPeriod: config.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			// What the elector believes is not used: see the package comment.
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("election: %w", err)
	}
	c.elector = elector
	return c, nil
}

// Run takes part until ctx ends, and gives leadership up then, before it returns. A replica that
// lost leadership stands again.
func (c *Candidate) Run(ctx context.Context) {
	for ctx.Err() == nil {
		c.elector.Run(ctx)
	}
}

// Identity is who this replica is, in the lock.
func (c *Candidate) Identity() string { return c.config.Lock.Identity() }

// Standing is how things stand now.
func (c *Candidate) Standing() Standing {
	now := c.config.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Standing{Reign: c.over}
	switch mine := c.config.Lock.Identity(); {
	case now.Before(c.until):
		s.Role = RoleLeads
	case c.holder == mine || c.holder == "" && c.reign > 0:
		if !c.asked.Before(c.until) {
			s.Role = RoleLapsed
		}
	case c.holder != "":
		leader, err := ParseIdentity(c.holder)
		if err == nil {
			s.Role, s.Leader, s.Reign = RoleFollows, leader, c.named
		}
	}
	return s
}

// Reigns is how often this replica has begun to lead; a reign that lapsed and was renewed counts as another.
func (c *Candidate) Reigns() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reign
}

// renewed takes note of a renewal that was sent then and has been answered now.
func (c *Candidate) renewed(sent, now time.Time) {
	if reign, fresh := c.extend(sent, now); fresh {
		c.config.Log.Info("election: leads", "reign", reign)
	}
}

// extend is renewed without a word; it reports whether a reign has begun, and which it is.
func (c *Candidate) extend(sent, now time.Time) (reign int64, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nameLocked(c.config.Lock.Identity())
	until := sent.Add(c.config.RenewDeadline)
	if !now.Before(until) {
		return c.reign, false // too late to mean anything
	}
	if fresh = !now.Before(c.until); fresh {
		c.end()
		c.reign++
		c.over, c.end = context.WithCancel(context.Background())
	}
	c.until = until
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(until.Sub(now), c.expire)
	c.config.Authority.LeadUntil(c.reign, until)
	return c.reign, fresh
}

// expire ends the reign if nothing has renewed it.
func (c *Candidate) expire() {
	now := c.config.Clock()
	if reign, over := c.lapse(now); over {
		c.config.Log.Warn("election: its last renewal has run out", "reign", reign)
	}
}

// lapse is expire without a word; it reports whether the reign has ended so, and which it was.
func (c *Candidate) lapse(now time.Time) (reign int64, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) || c.over.Err() != nil {
		return c.reign, false
	}
	c.end()
	return c.reign, true
}

// resign ends authority at once.
func (c *Candidate) resign() {
	now := c.config.Clock()
	c.config.Log.Info("election: gives leadership up", "reign", c.abdicate(now))
}

// abdicate is resign without a word; it returns the reign that has ended.
func (c *Candidate) abdicate(now time.Time) (reign int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.until = now
	c.config.Authority.LeadUntil(c.reign, now)
	return c.reign
}

// seen takes note of who the lock names. Another holder, or none, ends what is left of our reign. By
// the election's rules that has run out by then, but a person may have edited or deleted the lock.
func (c *Candidate) seen(holder string) {
	switch changed := c.name(holder); {
	case !changed || holder == c.Identity():
	case holder == "":
		c.config.Log.Info("election: nobody is named")
	default:
		c.config.Log.Info("election: another is named", "leader", holder)
	}
	if now := c.config.Clock(); holder != c.Identity() && c.holds(now) {
		c.config.Log.Warn("election: the lock was taken from this replica", "reign", c.abdicate(now))
	}
}

// looked takes note of a look at the lock that began then.
func (c *Candidate) looked(began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = began
}

// holds reports whether this replica has authority then.
func (c *Candidate) holds(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until)
}

// isNamed reports whether the lock named this replica last.
func (c *Candidate) isNamed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder == c.config.Lock.Identity()
}

// name is seen without a word; it reports whether the holder is another than before.
func (c *Candidate) name(holder string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nameLocked(holder)
}

// nameLocked notes the holder for a caller that holds mu, and reports whether it is another.
func (c *Candidate) nameLocked(holder string) bool {
	if holder == c.holder {
		return false
	}
	c.rename()
	c.holder = holder
	c.named, c.rename = context.WithCancel(context.Background())
	return true
}
