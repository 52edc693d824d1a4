package router_test

import (
	"errors"
	"testing"

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
