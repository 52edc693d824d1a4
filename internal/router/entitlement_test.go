package router_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

func TestASenderIsForItsSubjectsOnly(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) {
		f.Senders = []router.Sender{
			{Name: "train", Access: router.AccessOpen, Subjects: []router.Subject{
				{Kind: router.SubjectUser, Name: "trainer"}, {Kind: router.SubjectGroup, Name: "researchers"},
			}},
			{Name: "eval", Access: router.AccessOpen},
		}
	})
	for what, c := range map[string]struct {
		sender router.SenderName
		caller router.Caller
		may    bool
	}{
		"the user named":                        {"train", router.Caller{User: "trainer"}, true},
		"one of the group named":                {"train", router.Caller{User: "ann", Groups: []string{"people", "researchers"}}, true},
		"somebody else":                         {"train", router.Caller{User: "ann", Groups: []string{"people"}}, false},
		"a group of the name of the user":       {"train", router.Caller{User: "ann", Groups: []string{"trainer"}}, false},
		"a user of the name of the group":       {"train", router.Caller{User: "researchers"}, false},
		"nobody":                                {"train", router.Caller{}, false},
		"anybody, of a sender without subjects": {"eval", router.Caller{User: "ann"}, true},
		"anybody, of a sender there is not":     {"test", router.Caller{User: "ann"}, true},
	} {
		err := p.Table.Entitled(c.sender, c.caller)
		refusal, refused := errors.AsType[*router.Refusal](err)
		if (err == nil) != c.may || err != nil && (!refused || refusal.Reason != router.ReasonSessionForbidden) {
			t.Errorf("%s: %v, want entitled: %t", what, err, c.may)
		}
	}
}

// trainersAre narrows the sender train to some users.
func trainersAre(users ...string) func(*router.Fleet) {
	return func(f *router.Fleet) {
		f.Senders = []router.Sender{{Name: "train", Access: router.AccessOpen}}
		for _, name := range users {
			f.Senders[0].Subjects = append(f.Senders[0].Subjects, router.Subject{Kind: router.SubjectUser, Name: name})
		}
	}
}

func TestNobodyIsGrantedByRightsThatWereTakenAwayBetweenTheJudgementAndTheGrant(t *testing.T) {
	for what, c := range map[string]struct {
		change  func(*router.Fleet)
		changed bool
	}{
		"nothing":                       {func(*router.Fleet) {}, false},
		"another fleet":                 {func(f *router.Fleet) { f.Published = "v2"; trainersAre("ann")(f) }, false},
		"the sender is for another":     {trainersAre("bob"), true},
		"the sender is for one more":    {trainersAre("ann", "bob"), true},
		"the sender is for everybody":   {trainersAre(), true},
		"the sender is gone for a time": {func(f *router.Fleet) { f.Senders = nil }, false},
	} {
		p := routertest.New(t, routertest.Backends("a"))
		p.Change(trainersAre("ann"))
		r := p.Request("r1", "s1")
		r.Rights = p.Table.Rights("train")
		p.Change(c.change)
		_, err := p.Table.Acquire(r, p.Now())
		if got := errors.Is(err, router.ErrRightsChanged); got != c.changed {
			t.Errorf("%s: %v, want its caller judged again: %t", what, err, c.changed)
		}
	}
}

func TestASenderThatIsDeclaredMeanwhileHasItsCallersJudgedAgain(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) { f.Senders = nil })
	r := p.Request("r1", "s1")
	r.Rights = p.Table.Rights("train")
	p.Change(trainersAre("bob"))
	if _, err := p.Table.Acquire(r, p.Now()); !errors.Is(err, router.ErrRightsChanged) {
		t.Error(err)
	}
}

func TestWhoeverWaitsIsJudgedAgainOnceTheSubjectsChangeAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"))
		p.Change(func(f *router.Fleet) { trainersAre("ann")(f); f.Leasing = router.LeasingHeld })
		r := p.Request("r1", "s1")
		r.Rights = p.Table.Rights("train")
		w := newWaiters(p)
		defer w.wait(r)()
		p.Change(func(f *router.Fleet) { f.Config.AdmissionPercent = 50 })
		if w.expect(t); len(w.errs) != 0 {
			t.Fatal("after a change of something else: ", w.errs)
		}
		p.Change(trainersAre("bob"))
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		if w.expect(t); !errors.Is(w.errs["r1"], router.ErrRightsChanged) {
			t.Error(w.errs)
		}
	})
}
