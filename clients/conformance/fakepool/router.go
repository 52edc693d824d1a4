package fakepool

import (
	"fmt"
	"io"
	"net/http"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// poolPath is where the pool is below the router's address.
const poolPath = "/v1alpha1/namespaces/rl/inferencepools/policy"

// routes plays the router.
func (p *Pool) routes() http.Handler {
	calls := http.NewServeMux()
	handle := func(pattern string, understand func(r *http.Request, raw []byte) call) {
		calls.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, understand) })
	}
	handle("GET "+poolPath, func(*http.Request, []byte) call {
		return call{kind: "live", word: "live", status: http.StatusOK, body: live()}
	})
	handle("POST "+poolPath+"/leases", p.acquire)
	handle("POST "+poolPath+"/leases/{id}/renew", p.renew)
	handle("POST "+poolPath+"/leases/{id}/release", p.release)
	handle("DELETE "+poolPath+"/sessions/{id}", p.end)
	handle("/", func(r *http.Request, _ []byte) call {
		return p.refuse(http.StatusNotFound, fmt.Sprintf("there is no call %s %s", r.Method, r.URL.Path))
	})
	return calls
}

// serve takes note of a call and answers it.
func (p *Pool) serve(w http.ResponseWriter, r *http.Request, understand func(r *http.Request, raw []byte) call) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away in the middle of a call
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+RouterToken {
		p.seen.fault("C27", fmt.Sprintf("%s %s carried Authorization %q", r.Method, r.URL.Path, got))
	}
	c := understand(r, raw)
	p.seen.heard(c.kind, r.Header)
	p.trace.add(c.word)
	answer := p.script(c.kind)
	p.renewTrust(c.kind)
	if c.act != nil && !refuses(c.kind, answer) {
		c.status, c.body = c.act()
	}
	if err := p.hold(r.Context(), answer.DelaySeconds, answer.Until); err != nil {
		return
	}
	p.answer(w, r, c, answer)
}

// renewTrust replaces the authority, once, if the scenario wants it at such a call. No connection of
// before is kept, so that whoever calls next has to know the new one.
func (p *Pool) renewTrust(kind string) {
	if p.vault == nil || p.scenario.Trust.ReplacedOn != kind {
		return
	}
	p.renewed.Do(func() {
		if err := p.vault.replace(); err != nil {
			p.seen.fault("the pool itself", err.Error())
		}
		p.server.SetKeepAlivesEnabled(false)
	})
}

// call is a call of the router, understood.
type call struct {
	// kind is acquire, renew, release, forgo, end, live or refused; word is that of the trace.
	kind, word string
	// status and body are the usual answer, if act, which finds it, is nil.
	status int
	body   map[string]any
	act    func() (int, map[string]any)
}

// refuses: a scripted refusal of an acquire means that no lease is given. Of other calls it means
// that the client is told so, no more.
func refuses(kind string, a conformance.Answer) bool {
	return kind == "acquire" && a.Reason != "" && a.Fault == ""
}

// refuse is a call that the router would refuse, which no client makes.
func (p *Pool) refuse(status int, detail string) call {
	p.seen.fault("C28", detail)
	return call{
		kind: "refused", word: "refused", status: status,
		body: map[string]any{"status": status, "reason": "Invalid", "detail": detail},
	}
}

func (p *Pool) acquire(_ *http.Request, raw []byte) call {
	var body acquireCall
	members, err := decode(raw, &body)
	if err == nil {
		err = body.validate()
	}
	if err != nil {
		return p.refuse(http.StatusBadRequest, err.Error())
	}
	p.seen.note("acquire", members)
	word := "acquire"
	if body.Token != "" {
		word += "+token"
	}
	return call{kind: "acquire", word: word, act: func() (int, map[string]any) { return p.seen.grant(p.next, body) }}
}

func (p *Pool) renew(r *http.Request, raw []byte) call {
	requestID := r.PathValue("id")
	var body renewCall
	members, err := decode(raw, &body)
	if err != nil {
		return p.refuse(http.StatusBadRequest, err.Error())
	}
	p.seen.note("renew", members)
	word := "renew"
	if body.Started {
		word += "+started"
	}
	return call{kind: "renew", word: word, act: func() (int, map[string]any) { return p.seen.renewal(requestID, body) }}
}

func (p *Pool) release(r *http.Request, raw []byte) call {
	requestID := r.PathValue("id")
	var body releaseCall
	members, err := decode(raw, &body)
	if err != nil {
		return p.refuse(http.StatusBadRequest, err.Error())
	}
	if body.Token == "" {
		p.seen.note("forgo", members)
		return call{kind: "forgo", word: "forgo", act: func() (int, map[string]any) { return p.seen.forgo(requestID, body) }}
	}
	p.seen.note("release", members)
	return call{
		kind: "release", word: "release:" + body.Outcome, act: func() (int, map[string]any) { return p.seen.ending(requestID, body) },
	}
}

func (p *Pool) end(r *http.Request, _ []byte) call {
	session := r.PathValue("id")
	if sender := r.URL.Query().Get("sender"); session != conformance.SessionID || sender != conformance.Sender {
		p.seen.fault("C5", fmt.Sprintf("the end of session %q of sender %q was told", session, sender))
	}
	return call{kind: "end", word: "end", status: http.StatusNoContent}
}

// live is the pool's state, as far as clients need it.
func live() map[string]any {
	return map[string]any{"epoch": conformance.Epoch, "term": 2, "backends": []any{}, "senders": []any{}}
}
