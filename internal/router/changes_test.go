package router_test

import (
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// TestChangesTellsThatAWaitHasEnded: the controller writes to status that something is drained,
// fenced, held or gone, and has nothing but the notice to know it from.
func TestChangesTellsThatAWaitHasEnded(t *testing.T) {
	for name, begin := range map[string]func(*router.Fleet){
		"a drain":                         func(f *router.Fleet) { f.Members[0].Drain = router.DrainMove },
		"a fence":                         func(f *router.Fleet) { f.Senders[0].Access = router.AccessFenced },
		"a hold":                          func(f *router.Fleet) { f.Leasing = router.LeasingHeld },
		"the wait for a retired backend":  func(f *router.Fleet) { f.Members = nil },
		"a drain past its deadline":       func(f *router.Fleet) { f.Members[0].Drain = router.DrainAbort },
		"a drain that keeps its sessions": func(f *router.Fleet) { f.Members[0].Drain = router.DrainKeep },
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			request := router.Request{ID: "r", Session: "s", Sender: "train", Epoch: 1, Executions: 1}
			grant, err := p.Table.Acquire(request, p.Now())
			if err != nil {
				t.Fatal(err)
			}
			p.Change(begin)
			for len(p.Table.Changes()) > 0 {
				<-p.Table.Changes()
			}
			if _, err := p.Table.Release(grant.Claim, router.Succeeded, router.Reply{}, p.Now()); err != nil {
				t.Fatal(err)
			}
			if err := p.Table.EndSession("s", "train", p.Now()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Table.Changes():
			default:
				t.Error("no notice after the last execution there ended")
			}
		})
	}
}
