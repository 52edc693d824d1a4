package election

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// watchedLock is the lock, with an eye on what passes through it.
type watchedLock struct {
	resourcelock.Interface
	candidate *Candidate
}

// Get reads the lock.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	began := l.candidate.config.Clock()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.candidate.seen(record.HolderIdentity)
	}
	l.candidate.looked(began)
	return record, raw, err
}

// Create makes the lock, held by this replica.
func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update renews the lock, takes it or gives it up.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

// errNotOurs keeps the elector from giving up a lock that another holds by now: it reads the lock anew for
// that, and decides by what it had read before.
var errNotOurs = errors.New("the lock does not name this replica, and is not its to give up")

func (l *watchedLock) write(record resourcelock.LeaderElectionRecord, send func() error) error {
	mine := record.HolderIdentity == l.Identity()
	if !mine {
		if !l.candidate.isNamed() {
			return errNotOurs
		}
		l.candidate.resign() // before anybody can read that it is given up
	}
	sent := l.candidate.config.Clock()
	if err := send(); err != nil {
		return err
	}
	if mine {
		l.candidate.renewed(sent, l.candidate.config.Clock())
	}
	return nil
}
