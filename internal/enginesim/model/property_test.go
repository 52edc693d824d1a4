package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tight draws an engine so small that batches, chunks and the cache are all contended.
func tight(t *rapid.T) Params {
	return Params{
		PrefillTokensPerSecond: 1000, ChunkTokens: rapid.IntRange(1, 64).Draw(t, "chunk"),
		MaxRunning: rapid.IntRange(1, 6).Draw(t, "running"), BlockTokens: rapid.IntRange(1, 8).Draw(t, "block"),
		KVTokens: rapid.IntRange(120, 400).Draw(t, "kv"), ReserveTokens: rapid.IntRange(1, 20).Draw(t, "reserve"),
	}
}

func drawRequest(t *rapid.T, id string) Request {
	return Request{
		ID: id, Session: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "session"),
		PromptTokens: rapid.IntRange(1, 60).Draw(t, "prompt"), OutputTokens: rapid.IntRange(1, 50).Draw(t, "output"),
	}
}

func TestEngineKeepsItsInvariantsUnderAnyCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New(tight(t))
		now := time.Duration(0)
		ends := map[string]int{}
		submitted := 0
		note := func(events []Event) {
			for _, ev := range events {
				if ev.Kind == Finished {
					ends[ev.ID]++
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				submitted++
				if err := e.Submit(now, drawRequest(t, fmt.Sprint(submitted))); err != nil {
					t.Fatal(err)
				}
			},
			"advance": func(t *rapid.T) {
				now += time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond
				note(e.Advance(now))
			},
			"abort": func(t *rapid.T) {
				id := fmt.Sprint(rapid.IntRange(0, submitted).Draw(t, "id"))
				if e.Abort(now, id).Phase != Unknown {
					ends[id]++
				}
			},
			"pause":   func(*rapid.T) { e.Pause(now) },
			"resume":  func(*rapid.T) { e.Resume(now) },
			"retract": func(*rapid.T) { e.RetractAll(now) },
			"flush":   func(*rapid.T) { _ = e.Flush(now) },
			"": func(t *rapid.T) {
				if err := e.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
		e.Resume(now)
		for next, ok := e.NextEvent(); ok; next, ok = e.NextEvent() {
			now = next
			note(e.Advance(next))
		}
		for i := 1; i <= submitted; i++ {
			if ends[fmt.Sprint(i)] != 1 {
				t.Fatalf("request %d ended %d times", i, ends[fmt.Sprint(i)])
			}
		}
		if l := e.Load(); !e.Idle() || l.UsedTokens != 0 || l.Running+l.Waiting != 0 {
			t.Fatalf("after everything ended: %+v", l)
		}
	})
}

func TestAdvanceInSmallStepsDoesWhatOneLargeStepDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := tight(t)
		whole, split := New(params), New(params)
		n := rapid.IntRange(1, 20).Draw(t, "requests")
		var want, got []Event
		now := time.Duration(0)
		for i := range n {
			r := drawRequest(t, fmt.Sprint(i))
			gap := time.Duration(rapid.IntRange(0, 90000).Draw(t, "gap")) * time.Microsecond
			want = append(want, whole.Advance(now+gap)...)
			for at := now; at < now+gap; at += 1700 * time.Microsecond {
				got = append(got, split.Advance(at)...)
			}
			got = append(got, split.Advance(now+gap)...)
			now += gap
			if err := whole.Submit(now, r); err != nil {
				t.Fatal(err)
			}
			if err := split.Submit(now, r); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, whole.Advance(now+time.Hour)...)
		for next, ok := split.NextEvent(); ok; next, ok = split.NextEvent() {
			got = append(got, split.Advance(now+(next-now)/2)...)
			got = append(got, split.Advance(next)...)
			now = next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEveryRequestGetsAllItsTokensHoweverOftenItIsRetracted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New(tight(t))
		n := rapid.IntRange(1, 30).Draw(t, "requests")
		want := map[string]int{}
		reqs := make([]Request, n)
		for i := range reqs {
			reqs[i] = drawRequest(t, fmt.Sprint(i))
			want[reqs[i].ID] = reqs[i].OutputTokens
		}
		if err := e.Submit(0, reqs...); err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		sum := int64(0)
		for _, ev := range e.Advance(time.Hour) {
			if ev.Kind == Finished {
				got[ev.ID] = ev.OutputTokens
				sum += int64(ev.OutputTokens)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if total := e.Load().Totals.Generated; total != sum {
			t.Fatalf("generated %d, the requests got %d", total, sum)
		}
	})
}
