package settler

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

const (
	// round is how often the router is told of the time and asked for chores. The router paces the calls
	// to each engine itself.
	round = 250 * time.Millisecond
	// defaultTimeout bounds a call where Config does not.
	defaultTimeout = 5 * time.Second
)

// Table is the part of a pool's router that is served. *router.Table is one.
type Table interface {
	// Tick tells the router that time has passed: its leases run out, and some wait for time alone.
	Tick(now time.Time)
	// Chores lists what the engines should be asked now.
	Chores(now time.Time) []router.Chore
	// AbortAnswered says that the engine answered the aborts of those rids.
	AbortAnswered(incarnation router.Incarnation, rids []router.RID, now time.Time)
	// LoadsRead hands in the load of every rank, with the chore's stamp.
	LoadsRead(incarnation router.Incarnation, stamp uint64, ranks []router.RankLoad, now time.Time)
}

// Config says how engines are called. Only Transport is required.
type Config struct {
	// Transport carries the calls; pools may share one.
	Transport http.RoundTripper
	// Keys gives the engines' credentials, on each call; nil if they have none.
	Keys sglang.KeySource
	// Timeout bounds one call; 0 is 5 s.
	Timeout time.Duration
}

// settler is the work for one pool.
type settler struct {
	table  Table
	config Config
	calls  sync.WaitGroup

	mu   sync.Mutex
	busy map[router.Incarnation]struct{} // guarded by mu; engines that are being asked
}

// Run serves one pool until ctx ends, and returns once no call is under way. It may run for many
// pools at once; for one table it must run at most once at a time.
func Run(ctx context.Context, table Table, config Config) {
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	s := &settler{table: table, config: config, busy: map[router.Incarnation]struct{}{}}
	defer s.calls.Wait()
	ticker := time.NewTicker(round)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			table.Tick(now)
			for _, chore := range table.Chores(now) {
				s.start(ctx, chore)
			}
		}
	}
}

// start has a chore done in the background, unless its engine still owes the answer to another:
// the router will ask again.
func (s *settler) start(ctx context.Context, chore router.Chore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.busy[chore.Incarnation]; busy {
		return
	}
	s.busy[chore.Incarnation] = struct{}{}
	s.calls.Go(func() {
		defer s.finish(chore.Incarnation)
		s.do(ctx, chore)
	})
}

func (s *settler) finish(incarnation router.Incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, incarnation)
}

// do asks one engine what a chore says.
func (s *settler) do(ctx context.Context, chore router.Chore) {
	base, err := sglang.ParseBaseURL(chore.URL)
	if err != nil {
		return // the controller has reported an address that nobody can call
	}
	engine := sglang.New(base, s.config.Transport, s.config.Keys)
	if answered := s.abort(ctx, engine, chore.Abort); len(answered) > 0 {
		s.table.AbortAnswered(chore.Incarnation, answered, time.Now())
	}
	if !chore.ReadLoads {
		return
	}
	if ranks := s.loads(ctx, engine); len(ranks) > 0 {
		s.table.LoadsRead(chore.Incarnation, chore.Stamp, ranks, time.Now())
	}
}

// abort sends the aborts and returns those that were answered. The first that is not ends it: an
// engine that does not answer one answers none, and the bound is for the engine.
func (s *settler) abort(ctx context.Context, engine *sglang.Client, rids []router.RID) []router.RID {
	for i, rid := range rids {
		if err := s.bounded(ctx, func(ctx context.Context) error { return engine.AbortRequest(ctx, string(rid)) }); err != nil {
			return rids[:i]
		}
	}
	return rids
}

// loads reads the load of every rank. It is nil if the engine does not answer, or does not tell
// all of it: a queue that is not shown may hold what the proof is about.
func (s *settler) loads(ctx context.Context, engine *sglang.Client) []router.RankLoad {
	var snapshots []sglang.LoadSnapshot
	err := s.bounded(ctx, func(ctx context.Context) (err error) {
		snapshots, err = engine.Loads(ctx)
		return err
	})
	if err != nil {
		return nil
	}
	ranks := make([]router.RankLoad, 0, len(snapshots))
	for _, snapshot := range snapshots {
		if snapshot.Detail != sglang.DetailFull {
			return nil
		}
		ranks = append(ranks, router.RankLoad{Rank: snapshot.Rank, Clock: snapshot.Timestamp, Total: snapshot.Total()})
	}
	return ranks
}

func (s *settler) bounded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	return call(ctx)
}
