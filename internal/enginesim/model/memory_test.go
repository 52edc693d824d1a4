package model

import (
	"testing"
	"time"
)

func TestAnAdmissionLeavesTheReserveOfThoseThatRun(t *testing.T) {
	waiting := func(reserve int) int {
		p := plain()
		p.KVTokens, p.ReserveTokens = 320, reserve
		e := New(p)
		submit(t, e, 0, Request{ID: "first", PromptTokens: 160, OutputTokens: 100})
		submit(t, e, 200*ms, Request{ID: "second", PromptTokens: 96, OutputTokens: 10})
		e.Advance(220 * ms)
		return e.Load().Waiting
	}
	if n := waiting(16); n != 0 {
		t.Errorf("with room for the reserve %d wait", n)
	}
	if n := waiting(64); n != 1 {
		t.Errorf("without room for the reserve %d wait", n)
	}
}

func TestARetractedRequestIsCountedOnceAndRemembersItsFirstAdmission(t *testing.T) {
	e := New(plain())
	submit(t, e, 0, Request{ID: "warm", Session: "s", PromptTokens: 32, OutputTokens: 1})
	e.Advance(time.Second)
	submit(t, e, time.Second, Request{ID: "r", Session: "s", PromptTokens: 64, OutputTokens: 20})
	e.Advance(1100 * ms)
	e.RetractAll(1100 * ms)
	events := e.Advance(time.Minute)
	last := events[len(events)-1]
	if last.Kind != Finished || last.Queued != 0 || last.CachedTokens != 32 || last.Retractions != 1 {
		t.Errorf("%+v", last)
	}
	if got := e.Totals(); got.Prompt != 96 || got.Cached != 32 {
		t.Errorf("%+v", got)
	}
}

func TestWhatARunningRequestSharesIsNotEvicted(t *testing.T) {
	e := New(plain()) // 100 blocks
	submit(t, e, 0, Request{ID: "a1", Session: "a", PromptTokens: 320, OutputTokens: 1})
	e.Advance(time.Second)
	submit(t, e, time.Second, Request{ID: "a2", Session: "a", PromptTokens: 336, OutputTokens: 300})
	submit(t, e, 1100*ms, Request{ID: "b", Session: "b", PromptTokens: 640, OutputTokens: 1})
	e.Advance(2 * time.Second)
	// "a" shares 20 blocks with a2 and was used before "b", which keeps 40; this needs more than is free.
	submit(t, e, 2*time.Second, Request{ID: "big", PromptTokens: 800, OutputTokens: 1})
	e.Advance(2500 * ms)
	if err := e.check(); err != nil {
		t.Error(err)
	}
	if kept := e.kv.entries["a"].blocks; kept != 20 || e.kv.entries["b"].blocks >= 40 {
		t.Errorf("a keeps %d blocks, b %d", kept, e.kv.entries["b"].blocks)
	}
}
