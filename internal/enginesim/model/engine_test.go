package model

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// plain is an engine of round numbers: 1 ms per prompt token, 10 ms + 1 ms per request for a decode step.
func plain() Params {
	return Params{
		PrefillTokensPerSecond: 1000, ChunkTokens: 100, DecodeBase: 10 * ms, DecodePerRequest: ms,
		MaxRunning: 4, KVTokens: 1600, BlockTokens: 16, ReserveTokens: 16,
	}
}

func submit(t *testing.T, e *Engine, now time.Duration, reqs ...Request) {
	t.Helper()
	if err := e.Submit(now, reqs...); err != nil {
		t.Fatal(err)
	}
}

func wantEvents(t *testing.T, got []Event, want ...Event) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAloneARequestTakesItsPrefillAndOneStepPerFurtherToken(t *testing.T) {
	e := New(plain())
	submit(t, e, 5*ms, Request{ID: "r", PromptTokens: 50, OutputTokens: 11})
	wantEvents(t, e.Advance(time.Second),
		Event{At: 55 * ms, Kind: FirstToken, ID: "r", OutputTokens: 1},
		Event{At: 165 * ms, Kind: Finished, ID: "r", OutputTokens: 11})
}

func TestALongPromptIsPrefilledInChunksAndStallsDecode(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "short", PromptTokens: 10, OutputTokens: 3})
	submit(t, e, 15*ms, Request{ID: "long", PromptTokens: 250, OutputTokens: 1})
	// short: first token at 10, its step in progress ends at 21; then 250 ms of prefill; then its last step.
	wantEvents(t, e.Advance(time.Second),
		Event{At: 10 * ms, Kind: FirstToken, ID: "short", OutputTokens: 1},
		Event{At: 271 * ms, Kind: FirstToken, ID: "long", OutputTokens: 1, Queued: 6 * ms},
		Event{At: 271 * ms, Kind: Finished, ID: "long", OutputTokens: 1, Queued: 6 * ms},
		Event{At: 282 * ms, Kind: Finished, ID: "short", OutputTokens: 3})
}

func TestABatchSharesStepsAndEachRequestMakesThemLonger(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "a", PromptTokens: 10, OutputTokens: 2}, Request{ID: "b", PromptTokens: 10, OutputTokens: 3})
	wantEvents(t, e.Advance(time.Second),
		Event{At: 20 * ms, Kind: FirstToken, ID: "a", OutputTokens: 1},
		Event{At: 20 * ms, Kind: FirstToken, ID: "b", OutputTokens: 1},
		Event{At: 32 * ms, Kind: Finished, ID: "a", OutputTokens: 2},
		Event{At: 43 * ms, Kind: Finished, ID: "b", OutputTokens: 3})
}

func TestRequestsBeyondMaxRunningWaitTheirTurn(t *testing.T) {
	p := plain()
	p.MaxRunning = 1
	e := New(p)
	submit(t, e, 0, Request{ID: "a", PromptTokens: 10, OutputTokens: 2}, Request{ID: "b", PromptTokens: 10, OutputTokens: 1})
	e.Advance(5 * ms)
	if l := e.Load(); l.Running != 1 || l.Waiting != 1 || l.WaitingTokens != 10 {
		t.Errorf("one runs and one waits with its 10 tokens, got %+v", l)
	}
	wantEvents(t, e.Advance(time.Second),
		Event{At: 10 * ms, Kind: FirstToken, ID: "a", OutputTokens: 1},
		Event{At: 21 * ms, Kind: Finished, ID: "a", OutputTokens: 2},
		Event{At: 31 * ms, Kind: FirstToken, ID: "b", OutputTokens: 1, Queued: 21 * ms},
		Event{At: 31 * ms, Kind: Finished, ID: "b", OutputTokens: 1, Queued: 21 * ms})
}

func TestTheNextTurnOfASessionSkipsWhatItFindsInTheCache(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "1", Session: "s", PromptTokens: 60, OutputTokens: 5})
	e.Advance(time.Second)
	// 64 tokens are kept, which is 4 whole blocks; 36 of the next 100 have to be computed.
	submit(t, e, time.Second, Request{ID: "2", Session: "s", PromptTokens: 100, OutputTokens: 1})
	submit(t, e, time.Second, Request{ID: "other", Session: "t", PromptTokens: 100, OutputTokens: 1})
	got := e.Advance(2 * time.Second)
	wantEvents(t, got[:2],
		Event{At: 1036 * ms, Kind: FirstToken, ID: "2", OutputTokens: 1, CachedTokens: 64},
		Event{At: 1036 * ms, Kind: Finished, ID: "2", OutputTokens: 1, CachedTokens: 64})
	if got[2].CachedTokens != 0 {
		t.Errorf("another session found %d tokens of this one", got[2].CachedTokens)
	}
}

func TestTheLeastRecentlyUsedSessionIsEvictedFirst(t *testing.T) {
	e := New(plain()) // 100 blocks
	for i, s := range []string{"old", "new", "old"} {
		submit(t, e, time.Duration(i)*time.Second, Request{ID: fmt.Sprint(i), Session: s, PromptTokens: 640, OutputTokens: 1})
		e.Advance(time.Duration(i+1) * time.Second)
	}
	// 80 blocks are kept. This takes 40, of which 20 come from "new", the one not used since.
	submit(t, e, 3*time.Second, Request{ID: "big", PromptTokens: 640, OutputTokens: 1})
	e.Advance(4 * time.Second)
	for i, c := range []struct {
		session string
		want    int
	}{{"old", 624}, {"new", 320}} {
		id := "again" + c.session
		submit(t, e, time.Duration(4+i)*time.Second, Request{ID: id, Session: c.session, PromptTokens: 640, OutputTokens: 1})
		if got := e.Advance(time.Duration(5+i) * time.Second)[0].CachedTokens; got != c.want {
			t.Errorf("session %s found %d tokens, want %d", c.session, got, c.want)
		}
	}
}

func TestAFullCacheRetractsTheRequestWithTheFewestTokens(t *testing.T) {
	p := plain()
	p.KVTokens, p.ReserveTokens = 160, 1
	e := New(p)
	submit(t, e, 0, Request{ID: "first", PromptTokens: 48, OutputTokens: 60})
	submit(t, e, 100*ms, Request{ID: "second", PromptTokens: 48, OutputTokens: 60})
	var retracted []string
	finished := map[string]Event{}
	for _, ev := range e.Advance(time.Minute) {
		switch ev.Kind {
		case Retracted:
			retracted = append(retracted, ev.ID)
		case Finished:
			finished[ev.ID] = ev
		case FirstToken:
		}
	}
	if diff := cmp.Diff([]string{"second"}, retracted); diff != "" {
		t.Error(diff)
	}
	if f := finished["second"]; f.OutputTokens != 60 || f.Retractions != 1 || f.At < finished["first"].At {
		t.Errorf("the retracted request must still finish, after the other: %+v", f)
	}
}

func TestPauseFreezesTheStepInProgress(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "r", PromptTokens: 10, OutputTokens: 2})
	e.Pause(15 * ms)
	submit(t, e, 16*ms, Request{ID: "late", PromptTokens: 10, OutputTokens: 1})
	e.Advance(16 * ms)
	if _, ok := e.NextEvent(); ok {
		t.Error("a paused engine has no next event after the ones it owes")
	}
	e.Advance(time.Second)
	e.Resume(time.Second)
	wantEvents(t, e.Advance(2*time.Second),
		Event{At: 1006 * ms, Kind: Finished, ID: "r", OutputTokens: 2},
		Event{At: 1016 * ms, Kind: FirstToken, ID: "late", OutputTokens: 1, Queued: 990 * ms},
		Event{At: 1016 * ms, Kind: Finished, ID: "late", OutputTokens: 1, Queued: 990 * ms})
}

func TestRetractAllFreesTheCacheAndKeepsTheOrder(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "a", PromptTokens: 10, OutputTokens: 9}, Request{ID: "b", PromptTokens: 10, OutputTokens: 9})
	submit(t, e, 25*ms, Request{ID: "c", PromptTokens: 10, OutputTokens: 9})
	e.Pause(26 * ms)
	e.RetractAll(26 * ms)
	if l := e.Load(); l.Running != 0 || l.Waiting != 3 || l.Retracted != 2 || l.UsedTokens != 0 {
		t.Errorf("all wait and hold nothing, two of them retracted: %+v", l)
	}
	e.Resume(time.Second)
	var order []string
	for _, ev := range e.Advance(time.Minute) {
		if ev.Kind == Finished {
			order = append(order, ev.ID)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestAbortSaysHowFarTheRequestWas(t *testing.T) {
	p := plain()
	p.MaxRunning = 1
	e := New(p)
	submit(t, e, 0, Request{ID: "runs", PromptTokens: 10, OutputTokens: 100}, Request{ID: "waits", PromptTokens: 10, OutputTokens: 1})
	for _, c := range []struct {
		id   string
		want Progress
	}{
		{"waits", Progress{Phase: Waiting}},
		{"runs", Progress{Phase: Running, OutputTokens: 3}},
		{"runs", Progress{}},
		{"nobody", Progress{}},
	} {
		if diff := cmp.Diff(c.want, e.Abort(32*ms, c.id)); diff != "" {
			t.Errorf("%s: %s", c.id, diff)
		}
	}
	if !e.Idle() {
		t.Error("nothing is left after both were aborted")
	}
}

func TestSubmitRefusesWhatItCannotServe(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "there", PromptTokens: 1, OutputTokens: 100})
	for name, c := range map[string]struct {
		reqs []Request
		want error
	}{
		"an id in progress":           {[]Request{{ID: "there", PromptTokens: 1, OutputTokens: 1}}, ErrDuplicate},
		"an id twice in one call":     {[]Request{{ID: "x", PromptTokens: 1, OutputTokens: 1}, {ID: "x", PromptTokens: 1, OutputTokens: 1}}, ErrDuplicate},
		"more tokens than the cache":  {[]Request{{ID: "x", PromptTokens: 1600, OutputTokens: 1}}, ErrTooLong},
		"an empty prompt":             {[]Request{{ID: "x", OutputTokens: 1}}, ErrEmpty},
		"a good one beside a bad one": {[]Request{{ID: "y", PromptTokens: 1, OutputTokens: 1}, {ID: "x"}}, ErrEmpty},
	} {
		if err := e.Submit(0, c.reqs...); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if diff := cmp.Diff([]string{"there"}, e.IDs()); diff != "" {
		t.Errorf("a refusal changed something: %s", diff)
	}
}

func TestFlushForgetsSessionsOnlyWhenIdle(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "r", Session: "s", PromptTokens: 32, OutputTokens: 2})
	if err := e.Flush(0); !errors.Is(err, ErrBusy) {
		t.Errorf("flush of a busy engine: %v", err)
	}
	e.Advance(time.Second)
	if got := e.Load().KeptTokens; got != 32 {
		t.Errorf("kept %d tokens before the flush, want 32", got)
	}
	if err := e.Flush(time.Second); err != nil || e.Load().KeptTokens != 0 {
		t.Errorf("flush of an idle engine: %v, kept %d", err, e.Load().KeptTokens)
	}
}

func TestScaledEnginesDoTheSameWorkFaster(t *testing.T) {
	finish := func(p Params) time.Duration {
		e := New(p)
		submit(t, e, 0, Request{ID: "r", PromptTokens: 100, OutputTokens: 50})
		events := e.Advance(time.Hour)
		return events[len(events)-1].At
	}
	if full, half := finish(plain()), finish(plain().Scaled(0.5)); half != 2*full {
		t.Errorf("at half speed %v, at full speed %v", half, full)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for want, p := range map[string]Params{
		"MaxRunning is -1, it must not be negative":            {MaxRunning: -1},
		"DecodeBase is -1, it must not be negative":            {DecodeBase: -1},
		"KVTokens is 8, it must hold at least one block of 16": {KVTokens: 8},
	} {
		if err := p.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// BenchmarkLongOutputs runs 4,000 requests of 20,000 output tokens; its cost must follow the requests.
func BenchmarkLongOutputs(b *testing.B) {
	for b.Loop() {
		e := New(Params{KVTokens: 1 << 23})
		for i := range 4000 {
			r := Request{ID: fmt.Sprint(i), Session: fmt.Sprint(i % 500), PromptTokens: 2000, OutputTokens: 20000 + i}
			if err := e.Submit(time.Duration(i)*time.Second, r); err != nil {
				b.Fatal(err)
			}
		}
		e.Advance(1000 * time.Hour)
		if !e.Idle() {
			b.Fatal("not all requests finished")
		}
	}
}
