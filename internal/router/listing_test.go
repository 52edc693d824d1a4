package router_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// pages lists all sessions page by page.
func pages(t *router.Table, l router.Listing, now time.Time) (ids []router.SessionID, sizes []int) {
	for {
		page, more := t.Sessions(l, now)
		for _, e := range page {
			ids = append(ids, e.Session)
		}
		sizes = append(sizes, len(page))
		if !more {
			return ids, sizes
		}
		l.After = page[len(page)-1].Session
	}
}

func TestPagesHoldEachSessionOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := routertest.New(t, routertest.Backends("a", "b"))
		var want []router.SessionID
		for i := range rapid.IntRange(0, 60).Draw(rt, "sessions") {
			id := router.SessionID(fmt.Sprintf("s%d", i))
			p.Acquire(router.RequestID(fmt.Sprintf("r%d", i)), id)
			want = append(want, id)
		}
		slices.Sort(want)
		limit := rapid.IntRange(1, 70).Draw(rt, "limit")
		got, sizes := pages(p.Table, router.Listing{Limit: limit}, p.Now())
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Error(diff)
		}
		for _, n := range sizes[:len(sizes)-1] {
			if n != limit {
				rt.Errorf("a page of %d before the last, the limit is %d", n, limit)
			}
		}
	})
}

func TestAPageSaysWhereASessionLivesAndHowLongItHasBeenIdle(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.Senders("train", "eval"))
	p.Acquire("r1", "busy")
	eval := p.Request("r2", "idle")
	eval.Sender = "eval"
	p.Release(p.Grant(eval), router.Succeeded)
	p.Pass(90 * time.Second)
	home := router.SessionEntry{Sender: "train", Backend: "a", Incarnation: "a/1", Why: "Placed"}
	busy, idle := home, home
	busy.Session, busy.Active = "busy", 1
	idle.Session, idle.Sender, idle.Idle = "idle", "eval", 90*time.Second
	for name, c := range map[string]struct {
		ask  router.Listing
		want []router.SessionEntry
	}{
		"all":                  {router.Listing{Limit: 9}, []router.SessionEntry{busy, idle}},
		"of one sender":        {router.Listing{Limit: 9, Sender: "eval"}, []router.SessionEntry{idle}},
		"of one backend":       {router.Listing{Limit: 9, Backend: "a"}, []router.SessionEntry{busy, idle}},
		"of a backend unknown": {router.Listing{Limit: 9, Backend: "b"}, nil},
		"after an id":          {router.Listing{Limit: 9, After: "busy"}, []router.SessionEntry{idle}},
	} {
		t.Run(name, func(t *testing.T) {
			got, more := p.Table.Sessions(c.ask, p.Now())
			if diff := cmp.Diff(c.want, got); diff != "" || more {
				t.Error(more, diff)
			}
		})
	}
}

func TestTheIdleTimeOfAListingStandsStillWhileThePoolIsHeld(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Release(p.Acquire("r1", "s1"), router.Succeeded)
	p.Pass(time.Minute)
	p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
	p.Pass(time.Hour)
	if page, _ := p.Table.Sessions(router.Listing{Limit: 1}, p.Now()); page[0].Idle != time.Minute {
		t.Error(page[0].Idle)
	}
}

func TestSessionsThatStayAreListedWhileOthersComeAndGo(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(1_000_000))
	var want []router.SessionID
	for i := range 3000 {
		id := router.SessionID(fmt.Sprintf("stay-%04d", i))
		p.Acquire(router.RequestID(id), id)
		want = append(want, id)
	}
	stop := make(chan struct{})
	var churn sync.WaitGroup
	churn.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			id := router.SessionID(fmt.Sprintf("go-%d", i))
			if _, err := p.Table.Acquire(p.Request(router.RequestID(id), id), p.Now()); err == nil {
				_ = p.Table.EndSession(id, "train", p.Now())
			}
		}
	})
	for range 20 {
		got, _ := pages(p.Table, router.Listing{Limit: 700}, p.Now())
		got = slices.DeleteFunc(got, func(id router.SessionID) bool { return id < "stay" })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	close(stop)
	churn.Wait()
}
