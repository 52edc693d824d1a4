package verdict

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// log writes down executions one second after the other.
type log struct {
	records []execlog.Record
	clients []execlog.ClientRecord
	now     time.Time
}

func (l *log) tick() time.Time {
	l.now = l.now.Add(time.Second)
	return l.now
}

func (l *log) start(backend, life, session, turn, rid string) *log {
	l.records = append(l.records, execlog.Record{
		Time: l.tick(), Event: execlog.Start, Backend: backend, Life: life, Session: session, Turn: turn, RID: rid,
	})
	l.clients = append(l.clients, execlog.ClientRecord{Time: l.now, Session: session, Turn: turn, RID: rid, Event: execlog.Sent})
	return l
}

func (l *log) finish(rid string, outcome execlog.Outcome, tokens int) *log {
	for _, r := range l.records {
		if r.RID == rid && r.Event == execlog.Start {
			r.Time, r.Event, r.Outcome, r.OutputTokens = l.tick(), execlog.Finish, outcome, tokens
			l.records = append(l.records, r)
		}
	}
	return l
}

func (l *log) told(session, turn, rid string, event execlog.ClientEvent) *log {
	l.clients = append(l.clients, execlog.ClientRecord{Time: l.tick(), Session: session, Turn: turn, RID: rid, Event: event})
	return l
}

// run executes one session of two turns on the backends named, without a fault.
func run(first, second string) (*log, Run) {
	l := &log{now: time.Unix(1_700_000_000, 0)}
	l.start(first, "1", "s1", "0", "r0").finish("r0", execlog.Finished, 10).told("s1", "0", "r0", execlog.Succeeded)
	l.start(second, "1", "s1", "1", "r1").finish("r1", execlog.Finished, 20).told("s1", "1", "r1", execlog.Succeeded)
	return l, Run{
		Sessions: []workload.Session{{ID: "s1", Turns: make([]workload.Turn, 2)}},
		Senders:  map[string]string{"s1": "eval"},
	}
}

func (r Run) with(l *log) Run {
	r.Engines, r.Clients = l.records, l.clients
	return r
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		run  func() Run
		want string // empty: no fault
	}{
		"a session that stays and finishes is good": {run: func() Run {
			l, r := run("a", "a")
			return r.with(l)
		}},
		"leaving an undisturbed backend is a fault": {run: func() Run {
			l, r := run("a", "b")
			return r.with(l)
		}, want: "session s1 left a for b at turn 1"},
		"leaving a drained backend is not": {run: func() Run {
			l, r := run("a", "b")
			r.Disturbed = []string{"a"}
			return r.with(l)
		}},
		"a turn that ran twice is a fault even on the same backend": {run: func() Run {
			l, r := run("a", "a")
			l.start("a", "1", "s1", "1", "r2").finish("r2", execlog.Finished, 20).told("s1", "1", "r2", execlog.Succeeded)
			return r.with(l)
		}, want: "the earlier execution finished"},
		"a turn that nobody ran is a fault": {run: func() Run {
			l, r := run("a", "a")
			r.Sessions[0].Turns = make([]workload.Turn, 3)
			return r.with(l)
		}, want: "session s1 turn 2 ran to its end 0 times"},
		"a lost execution that the client was told about is good once made again": {run: func() Run {
			l, r := run("a", "a")
			r.Sessions[0].Turns = make([]workload.Turn, 3)
			r.Disturbed = []string{"a"}
			l.start("a", "1", "s1", "2", "r2").told("s1", "2", "r2", execlog.Dead)
			l.start("b", "1", "s1", "2", "r3").finish("r3", execlog.Finished, 5).told("s1", "2", "r3", execlog.Succeeded)
			return r.with(l)
		}},
		"a lost execution that nobody was told about is a fault": {run: func() Run {
			l, r := run("a", "a")
			l.start("a", "1", "s1", "2", "r2")
			return r.with(l)
		}, want: "the execution r2 on a was lost and nobody was told"},
		"running on a backend that was promised to be idle is a fault": {run: func() Run {
			l, r := run("a", "a")
			r.Quiet = []Quiet{{What: "drained a", Backend: "a", From: l.records[0].Time.Add(time.Millisecond), To: l.now}}
			return r.with(l)
		}, want: "although the status said drained a"},
		"running as a session that was promised to be fenced is a fault": {run: func() Run {
			l, r := run("a", "a")
			r.Quiet = []Quiet{{What: "fenced eval", Sender: "eval", From: l.records[3].Time.Add(-time.Millisecond), To: l.now}}
			return r.with(l)
		}, want: "session s1 turn 1 ran on a"},
		"running before, after or elsewhere is not": {run: func() Run {
			l, r := run("a", "a")
			r.Quiet = []Quiet{
				{Backend: "b", From: l.records[0].Time, To: l.now},
				{Sender: "train", From: l.records[0].Time, To: l.now},
				{Backend: "a", From: l.records[1].Time, To: l.records[2].Time},
			}
			return r.with(l)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := c.run().Faults()
			if c.want == "" && len(faults) > 0 {
				t.Errorf("found fault: %v", faults)
			}
			if c.want != "" && !strings.Contains(strings.Join(faults, "\n"), c.want) {
				t.Errorf("faults are %q, want one that says %q", faults, c.want)
			}
		})
	}
}

func TestMeasuredCountsWhatEnginesWroteDown(t *testing.T) {
	l, _ := run("b", "a")
	got := Measured([]Backend{{"b", 64}, {"a", 32}}, l.records)
	want := Table{
		{Backend: Backend{"a", 32}, Sessions: 1, Executions: 1, OutputTokens: 20},
		{Backend: Backend{"b", 64}, Sessions: 1, Executions: 1, OutputTokens: 10},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if share := got.Share(got[0]); math.Abs(share-2) > 1e-9 {
		t.Errorf("a generated two thirds on a third of the capacity, its share is %g, want 2", share)
	}
}

func TestRoundRobinDealsSessionsOutInTheirOrderOfArrival(t *testing.T) {
	session := func(id string, arrival time.Duration, output int) workload.Session {
		return workload.Session{ID: id, Arrival: arrival, Turns: []workload.Turn{{Output: output}}}
	}
	got := RoundRobin([]Backend{{"a", 1}, {"b", 1}}, []workload.Session{
		session("late", 2*time.Second, 4), session("first", 0, 1), session("second", time.Second, 2),
	})
	want := Table{
		{Backend: Backend{"a", 1}, Sessions: 2, Executions: 2, OutputTokens: 5},
		{Backend: Backend{"b", 1}, Sessions: 1, Executions: 1, OutputTokens: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVariationIsDeviationOverMeanPerCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		table Table
		want  float64
	}{
		"an empty table":              {nil, 0},
		"nothing generated":           {Table{{Backend: Backend{"a", 1}}}, 0},
		"equal per capacity":          {Table{{Backend: Backend{"a", 1}, OutputTokens: 5}, {Backend: Backend{"b", 2}, OutputTokens: 10}}, 0},
		"one idle, one at work":       {Table{{Backend: Backend{"a", 1}}, {Backend: Backend{"b", 1}, OutputTokens: 10}}, 1},
		"a quarter around their mean": {Table{{Backend: Backend{"a", 1}, OutputTokens: 3}, {Backend: Backend{"b", 1}, OutputTokens: 5}}, 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.table.Variation(); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("variation is %g, want %g", got, c.want)
			}
		})
	}
}

func TestPrintShowsBothTables(t *testing.T) {
	l, _ := run("a", "a")
	backends := []Backend{{"a", 64}, {"b", 64}}
	var out strings.Builder
	err := Print(&out, Measured(backends, l.records), RoundRobin(backends, []workload.Session{{ID: "s1", Turns: []workload.Turn{{Output: 30}}}}), "b")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"a 64 1 2 30 2.00 1 30 2.00", "b 64 0 0 0 0.00", "variation 1.0000 1.0000", "of the undisturbed 0.0000 0.0000"} {
		if !strings.Contains(text, want) {
			t.Errorf("table lacks %q:\n%s", want, out.String())
		}
	}
}
