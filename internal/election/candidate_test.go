package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berthmaster/berthmaster/internal/election"
)

// store is the Lease as the API server has it.
type store struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord // guarded by mu; nil: there is none
	version int                                // guarded by mu
}

var errAway = errors.New("the API server is away")

// lock is one replica's way to the store.
type lock struct {
	store    *store
	identity string
	known    int
	// delay is how long each call takes; away fails them all. Guarded by store.mu.
	delay time.Duration
	away  bool
}

func (l *lock) call() error {
	l.store.mu.Lock()
	delay, away := l.delay, l.away
	l.store.mu.Unlock()
	<-time.After(delay)
	if away {
		return errAway
	}
	return nil
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.call(); err != nil {
		return nil, nil, err
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "berthmaster")
	}
	l.known = l.store.version
	record := *l.store.record
	return &record, []byte(time.Duration(l.known).String()), nil
}

func (l *lock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, 0)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, l.known)
}

// write takes effect at once and is answered after the delay.
func (l *lock) write(record resourcelock.LeaderElectionRecord, replaces int) error {
	l.store.mu.Lock()
	if l.away || l.store.version != replaces {
		l.store.mu.Unlock()
		return errAway
	}
	l.store.version++
	l.store.record, l.known = &record, l.store.version
	l.store.mu.Unlock()
	return l.call()
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return l.identity }

func (l *lock) change(change func()) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	change()
}

// authority keeps what it was told last.
type authority struct {
	mu    sync.Mutex
	reign int64
	until time.Time
	clock func() time.Time // the replica's
}

func (a *authority) LeadUntil(reign int64, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reign, a.until = reign, until
}

func (a *authority) told() (int64, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reign, a.until
}

func (a *authority) holds() bool {
	_, until := a.told()
	return a.clock().Before(until)
}

// replica is one candidate of a test.
type replica struct {
	*election.Candidate
	lock      *lock
	authority *authority
	quit      func()
}

const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
	retryPeriod   = time.Second
)

func stand(t *testing.T, s *store, name string) *replica {
	t.Helper()
	return standBy(t, s, name, time.Now)
}

// standBy is stand by a clock of the replica's own.
func standBy(t *testing.T, s *store, name string, clock func() time.Time) *replica {
	t.Helper()
	r := &replica{lock: &lock{store: s, identity: election.Identity{Name: name, Address: "127.0.0.1:1", Life: "x"}.String()}, authority: &authority{clock: clock}}
	var err error
	r.Candidate, err = election.New(election.Config{
		Lock: r.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Authority: r.authority, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	r.quit = func() { cancel(); <-ended }
	return r
}

// pair is a replica that has led for a while, and one that comes after it.
func pair(t *testing.T, s *store) (one, other *replica) {
	t.Helper()
	one = stand(t, s, "one")
	pass(t, 5*time.Second, one)
	return one, stand(t, s, "other")
}

// pass lets virtual time go by, and finds out all along whether two have authority.
func pass(t *testing.T, d time.Duration, replicas ...*replica) {
	t.Helper()
	const step = 50 * time.Millisecond
	for range d / step {
		<-time.After(step)
		leaders := 0
		for _, r := range replicas {
			if r.authority.holds() {
				leaders++
			}
		}
		if leaders > 1 {
			t.Fatal("two replicas have authority")
		}
	}
}

func TestAuthorityEndsTheDeadlineAfterTheRenewalWasSentAndPassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		one, other := pair(t, &s)
		pass(t, 30*time.Second, one, other)
		if !one.authority.holds() || one.Standing().Role != election.RoleLeads {
			t.Fatal("the first does not lead")
		}
		if got := other.Standing(); got.Role != election.RoleFollows || got.Leader.Name != "one" {
			t.Errorf("the second: %+v, want to follow one", got)
		}
		one.lock.change(func() { one.lock.away = true })
		pass(t, renewDeadline+50*time.Millisecond, one, other)
		if one.authority.holds() || one.Standing().Role == election.RoleLeads || one.Standing().Reign.Err() == nil {
			t.Errorf("cut off for longer than the deadline: %+v", one.Standing())
		}
		pass(t, 2*retryPeriod, one, other)
		if one.Standing().Role != election.RoleLapsed {
			t.Errorf("once it has asked in vain: %+v", one.Standing())
		}
		pass(t, leaseDuration, one, other)
		if !other.authority.holds() {
			t.Fatal("nobody took over")
		}
		one.lock.change(func() { one.lock.away = false })
		pass(t, 5*time.Second, one, other)
		if got := one.Standing(); got.Role != election.RoleFollows || got.Leader.Name != "other" {
			t.Errorf("back again: %+v, want to follow", got)
		}
		one.quit()
		other.quit()
	})
}

func TestALeaderThatIsBackBeforeAnybodyBeginsANewReign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		one := stand(t, &s, "one")
		pass(t, 5*time.Second, one)
		before, _ := one.authority.told()
		one.lock.change(func() { one.lock.away = true })
		pass(t, time.Minute, one)
		one.lock.change(func() { one.lock.away = false })
		pass(t, 5*time.Second, one)
		if after, _ := one.authority.told(); !one.authority.holds() || after != before+1 {
			t.Errorf("reign %d after %d, holds %t", after, before, one.authority.holds())
		}
		one.quit()
	})
}

// What was released to it meanwhile, the one that has taken over would go on counting.
func TestALeaderThatStoodStillAnswersNobodyBeforeItHasAskedWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		one, other := pair(t, &s)
		// What it has begun fails when it goes on.
		one.lock.change(func() { one.lock.delay, one.lock.away = leaseDuration+3*time.Second, true })
		pass(t, renewDeadline+retryPeriod, one, other)
		one.lock.change(func() { one.lock.delay, one.lock.away = 0, false })
		for range 100 {
			pass(t, 100*time.Millisecond, one, other)
			switch got := one.Standing(); got.Role {
			case election.RoleNone:
			case election.RoleFollows:
				if got.Leader.Name != "other" {
					t.Errorf("follows %+v", got)
				}
				one.quit()
				other.quit()
				return
			default:
				t.Fatalf("it takes itself for what it was: %+v", got)
			}
		}
		t.Fatal("it has not found out who leads")
	})
}

func TestASlowAPIServerDoesNotEndLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		one := stand(t, &s, "one")
		one.lock.change(func() { one.lock.delay = 2 * time.Second })
		pass(t, 10*time.Second, one)
		reign, _ := one.authority.told()
		pass(t, time.Minute, one)
		if now, _ := one.authority.told(); reign == 0 || now != reign || !one.authority.holds() {
			t.Errorf("reign %d became %d, holds %t", reign, now, one.authority.holds())
		}
		one.quit()
	})
}

func TestWhoEndsCleanlyGivesLeadershipUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		one, other := pair(t, &s)
		pass(t, 5*time.Second, one, other)
		one.quit()
		if one.authority.holds() {
			t.Error("it still has authority")
		}
		pass(t, 3*retryPeriod, one, other)
		if !other.authority.holds() {
			t.Error("nobody took over within three retry periods")
		}
		other.quit()
	})
}

func TestTimesThatWouldLetTwoLeadAreRefused(t *testing.T) {
	good := election.Config{
		Lock: &lock{}, Authority: &authority{}, Clock: time.Now,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*election.Config){
		"a deadline as long as the lease": func(c *election.Config) { c.RenewDeadline = c.LeaseDuration },
		"no time for a retry":             func(c *election.Config) { c.RetryPeriod = c.RenewDeadline },
		"no retry period":                 func(c *election.Config) { c.RetryPeriod = 0 },
		"no lock":                         func(c *election.Config) { c.Lock = nil },
	} {
		bad := good
		spoil(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
