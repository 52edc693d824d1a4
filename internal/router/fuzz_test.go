package router

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// FuzzValidID holds the hand-written rule to the expression that the protocol documents.
func FuzzValidID(f *testing.F) {
	for _, seed := range []string{"a", "A.b_c-9", "", "-a", ".a", "a b", "a\n", "é", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,127}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := ValidID(s), form.MatchString(s); got != want {
			t.Errorf("ValidID(%q) = %v, the documented form says %v", s, got, want)
		}
	})
}

// FuzzRequest validates requests of every shape and, when they are valid, lets a table take them:
// whatever comes in, a refusal names its field and the state stays sound.
func FuzzRequest(f *testing.F) {
	f.Add("r", "s", "train", "", int64(0), int64(1), int64(1), "", "")
	f.Add("r", "s", "train", "g", int64(3), int64(1), int64(4096), "a", "a/1")
	f.Add("", "s", "train", "g", int64(-1), int64(0), int64(0), "a", strings.Repeat("x", 513))
	f.Add("r", "s", "nobody", "g", int64(1)<<62, int64(2), int64(4097), strings.Repeat("x", 254), "a/1")
	f.Fuzz(func(t *testing.T, id, session, sender, group string, generation, epoch, executions int64, last, incarnation string) {
		r := Request{
			ID: RequestID(id), Session: SessionID(session), Sender: SenderName(sender), Group: GroupID(group),
			SenderGeneration: generation, Epoch: Epoch(epoch), Executions: executions,
			LastName: BackendName(last), LastIncarnation: Incarnation(incarnation),
		}
		tab := small(t)
		_, err := tab.Acquire(r, worldEpoch)
		if invalid := r.Validate(); (invalid != nil) != errors.Is(err, ErrInvalid) {
			t.Errorf("Validate says %v, Acquire %v", invalid, err)
		}
		var refused *Refusal
		switch {
		case err == nil && (executions < 1 || executions > MaxExecutions || epoch != 1 || sender != "train" || !ValidID(id) || !ValidID(session)):
			t.Errorf("leased: %+v", r)
		case errors.As(err, &refused) && refused.Reason == ReasonInvalid && refused.Field == "":
			t.Errorf("refused as invalid without a field: %v", err)
		}
		if _, err := tab.Forgo(r, worldEpoch); err == nil && r.Validate() != nil {
			t.Errorf("forgone: %+v", r)
		}
		if err := tab.state.check(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzRelease releases under tokens and outcomes of every shape: what is not an outcome of the
// protocol changes nothing, and a token that was never given out ends no lease.
func FuzzRelease(f *testing.F) {
	for _, o := range []string{"Succeeded", "Aborted", "NotSent", "Rejected", "Cancelled", "Ambiguous", "", "succeeded", "Lost"} {
		f.Add(o, "v1", int64(10), int64(20), "", int64(1))
		f.Add(o, "", int64(-1), int64(1)<<50, "other", int64(0))
	}
	f.Fuzz(func(t *testing.T, outcome, version string, prompt, output int64, rid string, term int64) {
		tab := small(t)
		g, err := tab.Acquire(Request{ID: "r", Session: "s", Sender: "train", Epoch: 1, Executions: 1}, worldEpoch)
		if err != nil {
			t.Fatal(err)
		}
		c := g.Claim
		if rid != "" {
			c.RID, c.Term = RID(rid), Term(term)
		}
		reply := Reply{Version: Version(version), PromptTokens: prompt, OutputTokens: output}
		e, err := tab.Release(c, Outcome(outcome), reply, worldEpoch)
		acceptable := ValidOutcome(Outcome(outcome)) && reply.Validate() == nil
		switch {
		case err == nil && (!acceptable || e.Outcome != Outcome(outcome)):
			t.Errorf("released as %q with %+v: %+v", outcome, reply, e)
		case acceptable == errors.Is(err, ErrInvalid):
			t.Errorf("released as %q with %+v: %v", outcome, reply, err)
		}
		l := tab.state.leases["r"]
		if touched := l.outcome != OutcomeNone; touched && (err != nil || c.RID != g.Claim.RID) {
			t.Errorf("a release that was refused, or of another lease, ended this one as %q", l.outcome)
		}
		if err := tab.state.check(); err != nil {
			t.Error(err)
		}
	})
}

// small is a table of one healthy backend that leads term 1.
func small(t *testing.T) *Table {
	t.Helper()
	tab := NewTable("pool", nil, worldEpoch)
	tab.Lead(1, Takeover{}, worldEpoch)
	fleet := Fleet{
		Epoch: 1, Leasing: LeasingOpen, Config: DefaultConfig(), Senders: []Sender{{Name: "train", Access: AccessOpen}},
		Members: []Member{{Name: "a", Incarnation: "a/1", URL: "http://a", Capacity: 8}},
	}
	if err := tab.Apply(fleet, worldEpoch); err != nil {
		t.Fatal(err)
	}
	tab.Observe(Observation{Incarnation: "a/1", Seq: 1, Health: Healthy}, worldEpoch)
	return tab
}
