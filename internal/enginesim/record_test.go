package enginesim

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// lines are the records after boot, without what differs from run to run.
func (b *bubble) lines() []execlog.Record {
	all := b.log.all()
	if len(all) == 0 || all[0].Event != execlog.Boot {
		b.t.Fatalf("the log does not begin with boot: %v", all)
	}
	return all[1:]
}

var ignoreTimes = cmpopts.IgnoreFields(execlog.Record{}, "Time", "Life")

func TestAnExecutionLeavesAStartAndAFinish(t *testing.T) {
	inBubble(t, Config{Name: "b0", WeightVersion: "v1"}, func(b *bubble) {
		b.post("/generate", hundred(`,"rid":"r","session_id":"s"`), "X-Turn", "4", "X-Session-ID", "not this")
		want := []execlog.Record{
			{Event: execlog.Start, Backend: "b0", Session: "s", Turn: "4", RID: "r"},
			{Event: execlog.Finish, Backend: "b0", Session: "s", Turn: "4", RID: "r", Outcome: execlog.Finished, OutputTokens: 101, WeightVersion: "v1"},
		}
		if diff := cmp.Diff(want, b.lines(), ignoreTimes); diff != "" {
			t.Error(diff)
		}
		if lines := b.lines(); !about(lines[1].Time.Sub(lines[0].Time), hundredTime) || lines[0].Life == "" {
			t.Errorf("from %v to %v", lines[0].Time, lines[1].Time)
		}
	})
}

func TestSessionAndTurnFallBackToTheHeaderAndThePrompt(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.post("/generate", hundred(""), "X-Session-ID", "h")
		b.post("/generate", hundred(""), "X-Session-ID", "h")
		b.post("/generate", `{"text":"another prompt"}`, "X-Session-ID", "h")
		lines := b.lines()
		if lines[0].Session != "h" || lines[0].Turn == "" || lines[0].Turn != lines[2].Turn || lines[0].Turn == lines[4].Turn {
			t.Errorf("%+v", lines)
		}
		if lines[0].RID == "" || lines[0].RID == lines[2].RID {
			t.Errorf("rids of the engine's own: %q, %q", lines[0].RID, lines[2].RID)
		}
	})
}

func TestSamplesOfOneRequestAreToldApart(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.post("/generate", `{"text":"x","rid":"r","session_id":"s","sampling_params":{"n":3,"max_new_tokens":2}}`, "X-Turn", "1")
		seen := map[int]int{}
		for _, l := range b.lines() {
			if l.RID != "r" {
				t.Errorf("rid %q", l.RID)
			}
			seen[l.Sample]++
		}
		if diff := cmp.Diff(map[int]int{0: 2, 1: 2, 2: 2}, seen); diff != "" {
			t.Error(diff)
		}
		if v := execlog.Check(b.log.all(), nil).Violations; len(v) > 0 {
			t.Errorf("%v", v)
		}
	})
}

func TestADisconnectIsLoggedAsAborted(t *testing.T) {
	for _, extra := range []string{"", `,"stream":true`} {
		inBubble(t, Config{}, func(b *bubble) {
			c := b.start(http.MethodPost, "/generate", hundred(extra))
			after(200 * time.Millisecond)
			c.cancel()
			<-c.done
			lines := b.lines()
			if len(lines) != 2 || lines[1].Outcome != execlog.Aborted || lines[1].OutputTokens < 20 || lines[1].OutputTokens > 35 {
				t.Errorf("%+v", lines)
			}
		})
	}
}

func TestADisconnectWhilePausedIsLoggedOnceTheEngineGoesOn(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(200 * time.Millisecond)
		b.post("/pause_generation", `{"mode":"in_place"}`)
		c.cancel()
		after(time.Minute)
		if n := len(b.lines()); n != 1 {
			t.Errorf("%d lines while paused", n)
		}
		b.post("/continue_generation", `{}`)
		<-c.done
		if lines := b.lines(); len(lines) != 2 || lines[1].Outcome != execlog.Aborted {
			t.Errorf("%+v", lines)
		}
	})
}

func TestAParkedRequestThatGoesWasNeverStarted(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.post("/pause_generation", `{}`)
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(time.Second)
		c.cancel()
		<-c.done
		b.post("/continue_generation", `{}`)
		after(time.Minute)
		if n := len(b.lines()); n != 0 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestAKilledEngineLeavesAStartWithoutAFinish(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(200 * time.Millisecond)
		b.s.Close()
		<-c.done
		if !c.cut || len(b.lines()) != 1 {
			t.Errorf("cut %v, %+v", c.cut, b.lines())
		}
	})
}

func TestARefusedRequestIsNotLogged(t *testing.T) {
	inBubble(t, Config{MaxQueued: 1, DPSize: 2}, func(b *bubble) {
		for _, bad := range []string{`{}`, `{"text":"x","routed_dp_rank":2}`, `{"text":["a","b"],"rid":["same","same"],"sampling_params":{"n":0}}`} {
			b.post("/generate", bad)
		}
		for _, l := range b.lines() {
			if l.RID != "same" {
				t.Errorf("%+v", l)
			}
		}
	})
}

func TestAnEngineThatCannotLogEnds(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.log.mu.Lock()
		b.log.fail = errors.New("disk full")
		b.log.mu.Unlock()
		c := b.post("/generate", hundred(""))
		<-b.s.Done()
		if !c.cut || b.s.ExitCode() != exitLog {
			t.Errorf("cut %v, exit status %d", c.cut, b.s.ExitCode())
		}
	})
}
