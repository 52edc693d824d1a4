package page

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatIsRememberedIsSaidInTheWordsOfWhatIsSeen(t *testing.T) {
	s, v := newStage(t), newVisitor(t)
	v.open(s.url)
	for happening, want := range map[string]string{
		`{type: "TermBegan", term: 1}`:                                                   "A router leads the pool: term 1.",
		`{type: "TermBegan", term: 3}`:                                                   "Another router took over: term 3.",
		`{type: "BackendJoined", backend: {name: "a"}}`:                                  "a joined: a new engine process.",
		`{type: "BackendOpened", backend: {name: "a"}}`:                                  "a takes new sessions again.",
		`{type: "BackendClosed", backend: {name: "a"}, reason: "Drained"}`:               "a is drained.",
		`{type: "BackendClosed", backend: {name: "a"}, reason: "Draining"}`:              "a is draining.",
		`{type: "BackendClosed", backend: {name: "a"}, reason: "Refused"}`:               "a refuses connections.",
		`{type: "BackendsChanged", count: 40}`:                                           "40 backends changed at once.",
		`{type: "VersionPublished", publishedVersion: "step-2"}`:                         "Version step-2 is published.",
		`{type: "Fenced", sender: "eval"}`:                                               "Sender eval is fenced, and none of its executions runs.",
		`{type: "Failed", failure: {requestID: "r", sessionID: "s", backend: "a"}}`:      "The pool has failed: request r of session s on a",
		`{type: "BackendGone", backend: {name: "a"}}`:                                    "a is gone, and nothing is counted there.",
		`{type: "BackendClosed", backend: {name: "a"}, reason: "SomethingNewToThisOne"}`: "a SomethingNewToThisOne.",
	} {
		var said string
		v.must(v.Eval(v.ctx, fmt.Sprintf("recentText(%s)[1]", happening), &said))
		if !strings.HasPrefix(said, want) {
			t.Errorf("%s is said as %q, want %q", happening, said, want)
		}
	}
	for reason, want := range map[string]string{"EngineUpdating": "warn", "Drained": "warn", "Refused": "bad", "Unhealthy": "bad"} {
		var kind string
		v.must(v.Eval(v.ctx, fmt.Sprintf(`recentText({type: "BackendClosed", backend: {name: "a"}, reason: %q})[0]`, reason), &kind))
		if kind != want {
			t.Errorf("%s looks %q, want %q", reason, kind, want)
		}
	}
}

func TestAPoolThatAReplicaDoesNotKnowYetStaysOnThePageForAWhile(t *testing.T) {
	s, v := newStage(t), newVisitor(t)
	v.open(s.url)
	var list, later []string
	v.must(v.Eval(v.ctx, `holdOn([])`, &list))
	v.must(v.Eval(v.ctx, `(now.missed = Date.now() - 60000, holdOn([]))`, &later))
	if len(list) != 1 || len(later) != 0 {
		t.Errorf("at once the page has %v, and after a minute %v", list, later)
	}
	var state bool
	v.must(v.Eval(v.ctx, `(take({type: "State", state: {...now.state, term: 0, backends: []}}), now.state.backends.length > 0)`, &state))
	if !state {
		t.Error("a replica that does not lead empties the page")
	}
}
