package prober

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEachProbeThatLandsIsToldWithItsResultAndHowLongItTook(t *testing.T) {
	type landing struct {
		Target Key
		Result Result
		Took   time.Duration
	}
	for name, c := range map[string]struct {
		engine behaviour
		want   landing
	}{
		"an engine that generates": {generating("v1"), landing{a, ResultAnswered, time.Second}},
		"a slow one that fails":    {deaf(3*time.Second, 500), landing{a, ResultFailed, 3 * time.Second}},
		"nobody listens":           {refusing, landing{a, ResultRefused, 0}},
		"one that somebody paused": {paused, landing{a, ResultParked, 20 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []landing
				net := newNetwork()
				net.set("a:30000", c.engine)
				p := New(newJournal(t), Config{Transport: net, Jitter: evenly, Landed: func(k Key, r Result, d time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, landing{k, r, d})
				}})
				defer p.Close()
				p.Set("p", []Target{aTarget(t, "a", func(x *Target) { x.Period = time.Hour })})
				pass(time.Minute)
				if diff := cmp.Diff([]landing{c.want}, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAProbeThatAPauseCutsIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.set("a:30000", hung)
		told := make(chan Result, 1)
		p := New(newJournal(t), Config{Transport: net, Jitter: evenly, Landed: func(_ Key, r Result, _ time.Duration) { told <- r }})
		defer p.Close()
		p.Set("p", []Target{aTarget(t, "a")})
		pass(2 * time.Second)
		if err := p.Pause(a); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case r := <-told:
			t.Errorf("told %s of a probe that was cut", r)
		default:
		}
	})
}
