package server

import (
	"github.com/berthmaster/berthmaster/internal/router"
)

// backendRef names an incarnation.
type backendRef struct {
	Name        router.BackendName `json:"name"`
	Incarnation router.Incarnation `json:"incarnation"`
}

// acquireBody asks for a lease.
type acquireBody struct {
	router.Request
	WaitSeconds int64
	// Token is of an earlier answer; a part of the request's body.
	Token []byte
}

// renewBody extends a lease.
type renewBody struct {
	Token   []byte
	Started bool
}

// releaseBody ends a lease by its token, or, without one, spends the id of a request that
// never got a lease (outcome NotSent, with the identity).
type releaseBody struct {
	Token   []byte
	Outcome router.Outcome
	Reply   router.Reply
	// Request is the identity, and the id where the body repeats it.
	Request router.Request
}

// forms are the bodies of the protocol, made once per Server.
type forms struct {
	acquire form[acquireBody]
	renew   form[renewBody]
	release form[releaseBody]
}

func newForms() forms {
	backend := form[router.Request]{
		{"name", func(q *router.Request, r *jsonReader) { q.LastName = router.BackendName(r.text()) }},
		{"incarnation", func(q *router.Request, r *jsonReader) { q.LastIncarnation = router.Incarnation(r.text()) }},
	}
	return forms{
		acquire: append(identityOf(func(b *acquireBody) *router.Request { return &b.Request }),
			entry[acquireBody]{"lastBackend", func(b *acquireBody, r *jsonReader) { backend.object(r, "lastBackend.", &b.Request) }},
			entry[acquireBody]{"waitSeconds", func(b *acquireBody, r *jsonReader) { b.WaitSeconds = r.number() }},
			entry[acquireBody]{"token", func(b *acquireBody, r *jsonReader) { b.Token = r.rawText() }},
		),
		renew: form[renewBody]{
			{"token", func(b *renewBody, r *jsonReader) { b.Token = r.rawText() }},
			{"started", func(b *renewBody, r *jsonReader) { b.Started = r.flag() }},
		},
		release: append(form[releaseBody]{
			{"token", func(b *releaseBody, r *jsonReader) { b.Token = r.rawText() }},
			{"outcome", func(b *releaseBody, r *jsonReader) { b.Outcome = router.Outcome(r.text()) }},
			{"outputTokens", func(b *releaseBody, r *jsonReader) { b.Reply.OutputTokens = r.number() }},
			{"promptTokens", func(b *releaseBody, r *jsonReader) { b.Reply.PromptTokens = r.number() }},
			{"weightVersion", func(b *releaseBody, r *jsonReader) { b.Reply.Version = router.Version(r.text()) }},
		}, identityOf(func(b *releaseBody) *router.Request { return &b.Request })...),
	}
}

// identityOf are the members that identify a request, in a body that holds one.
func identityOf[T any](in func(*T) *router.Request) form[T] {
	return form[T]{
		{"requestID", func(b *T, r *jsonReader) { in(b).ID = router.RequestID(r.text()) }},
		{"sessionID", func(b *T, r *jsonReader) { in(b).Session = router.SessionID(r.text()) }},
		{"sender", func(b *T, r *jsonReader) { in(b).Sender = router.SenderName(r.text()) }},
		{"senderGeneration", func(b *T, r *jsonReader) { in(b).SenderGeneration = r.number() }},
		{"epoch", func(b *T, r *jsonReader) { in(b).Epoch = router.Epoch(r.number()) }},
		{"executions", func(b *T, r *jsonReader) { in(b).Executions = r.number() }},
		{"groupID", func(b *T, r *jsonReader) { in(b).Group = router.GroupID(r.text()) }},
	}
}

// decodeAcquire reads an acquire; raw must outlive the token of the body.
func (f *forms) decodeAcquire(r *jsonReader, raw []byte, body *acquireBody) error {
	*body = acquireBody{Request: router.Request{Executions: 1}}
	return f.acquire.decode(r, raw, body)
}
