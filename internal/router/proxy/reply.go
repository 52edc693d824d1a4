package proxy

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/jsonscan"
)

// reply is what is learnt from a 2xx reply while it passes by: whether it is complete, how its
// sequences ended, and what the lease's release tells of it.
type reply struct {
	form    form
	framing framing
	scanner *jsonscan.Scanner
	events  events
	state   completeness
	end     ending
	out     router.Reply
	// index and tokens are those of the event at hand. The events of a stream each repeat the number
	// of their sequence: first is that of number 0, further are those of the others.
	index, tokens int64
	first         int64
	further       map[int64]int64
}

// form is how a reply is laid out.
type form uint8

const (
	opaque form = iota // neither of the others: complete at its end
	document
	eventStream
)

// framing says whether the end of a reply can be told from a cut.
type framing uint8

const (
	byClosing framing = iota // the connection's end is all there is
	byLength                 // or by chunks
)

// completeness says whether the engine has said all that it has to say.
type completeness uint8

const (
	partial completeness = iota
	complete
)

// ending is how the sequences ended, the worst of them.
type ending uint8

const (
	finished ending = iota
	aborted         // at least one, by the engine
	failed          // the engine reported an error
)

// newReply looks at the headers of a reply.
func newReply(resp *http.Response) *reply {
	r := &reply{}
	if resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 {
		r.framing = byLength
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		r.form = eventStream
	case "application/json":
		r.form = document
	default:
		return r
	}
	r.scanner = jsonscan.New(r)
	return r
}

// Write takes the next piece. It never fails: what cannot be understood teaches nothing.
func (r *reply) Write(p []byte) (int, error) {
	switch r.form {
	case document:
		if _, err := r.scanner.Write(p); err != nil {
			r.form = opaque
		} else if r.scanner.Complete() {
			r.state = complete
			r.closeEvent()
		}
	case eventStream:
		r.events.feed(p, r)
	case opaque:
	}
	return len(p), nil
}

// atEnd notes that the reply has ended. Of a reply that says nothing by itself that is the whole of
// it, if its framing says so.
func (r *reply) atEnd() {
	if r.form == opaque && r.framing == byLength {
		r.state = complete
	}
}

// outcome is what a complete reply is to the router (design 5.2); anything else is Ambiguous.
func (r *reply) outcome() router.Outcome {
	switch {
	case r.state == partial || r.end == failed:
		return router.Ambiguous
	case r.end == aborted:
		return router.Aborted
	default:
		return router.Succeeded
	}
}

// summary is what the release tells of the reply.
func (r *reply) summary() router.Reply {
	out := r.out
	out.OutputTokens += r.first
	for _, n := range r.further {
		out.OutputTokens += n
	}
	const most = 1 << 40 // the router's bound: an engine's nonsense must not spoil a release
	out.OutputTokens, out.PromptTokens = min(max(out.OutputTokens, 0), most), min(max(out.PromptTokens, 0), most)
	if len(out.Version) > 256 {
		out.Version = ""
	}
	return out
}

// Enter looks into the few objects that tell something.
func (r *reply) Enter(p *jsonscan.Path) jsonscan.Interest {
	switch p.Depth() {
	case 0:
		return jsonscan.Look
	case 1:
		switch p.Key(1) {
		case "meta_info", "choices", "usage", "metadata", "": // "": a sequence of a batch
			return jsonscan.Look
		}
	case 2:
		if p.Is("meta_info", "finish_reason") || p.Is("choices", jsonscan.Any) || p.Is(jsonscan.Any, "meta_info") {
			return jsonscan.Look
		}
	case 3:
		if p.Is(jsonscan.Any, "meta_info", "finish_reason") {
			return jsonscan.Look
		}
	}
	return jsonscan.Skip
}

// Visit takes note of a value.
func (r *reply) Visit(p *jsonscan.Path, v jsonscan.Value) {
	switch p.Depth() {
	case 1:
		r.top(p.Key(1), v)
	case 2:
		r.inside(p, v)
	case 3, 4:
		r.deeper(p, v)
	}
}

// inside takes note of what stands in the objects of a single reply, or at the top of one of a
// batch.
func (r *reply) inside(p *jsonscan.Path, v jsonscan.Value) {
	switch p.Key(1) {
	case "meta_info", "usage", "metadata":
		r.meta(p.Key(2), v)
	case "":
		if p.Key(2) == "index" {
			r.index = number(v)
		}
	}
}

// deeper takes note of how sequences ended, and of what a batch says of each of them.
func (r *reply) deeper(p *jsonscan.Path, v jsonscan.Value) {
	switch {
	case p.Is("meta_info", "finish_reason", "type"), p.Is("choices", jsonscan.Any, "finish_reason"),
		p.Is(jsonscan.Any, "meta_info", "finish_reason", "type"):
		r.ended(v)
	case p.Is(jsonscan.Any, "meta_info", p.Key(3)):
		r.index = int64(p.Index(1))
		r.meta(p.Key(3), v)
		r.closeEvent()
	}
}

func (r *reply) top(name string, v jsonscan.Value) {
	switch name {
	case "index":
		r.index = number(v)
	case "error":
		if v.Kind != jsonscan.Literal {
			r.end = failed
		}
	case "object":
		if string(v.Text) == "error" {
			r.end = failed
		}
	case "type":
		r.typed(v.Text)
	}
}

// typed notes the events by which the newer APIs end a stream.
func (r *reply) typed(name []byte) {
	switch string(name) {
	case "message_stop", "response.completed", "response.incomplete":
		if r.form == eventStream {
			r.state = complete
		}
	case "error", "response.failed":
		r.end = failed
	}
}

func (r *reply) meta(name string, v jsonscan.Value) {
	switch name {
	case "weight_version":
		r.out.Version = router.Version(v.Text)
	case "prompt_tokens":
		r.out.PromptTokens = max(r.out.PromptTokens, number(v))
	case "completion_tokens":
		r.tokens = number(v)
	}
}

func (r *reply) ended(v jsonscan.Value) {
	if v.Kind == jsonscan.String && bytes.Equal(v.Text, []byte("abort")) && r.end == finished {
		r.end = aborted
	}
}

// closeEvent adds up what the event at hand, or the document, said of its sequence.
func (r *reply) closeEvent() {
	switch {
	case r.tokens <= 0:
	case r.index == 0:
		r.first = max(r.first, r.tokens)
	case len(r.further) < router.MaxExecutions:
		if r.further == nil {
			r.further = map[int64]int64{}
		}
		r.further[r.index] = max(r.further[r.index], r.tokens)
	}
	r.index, r.tokens = 0, 0
}

// number is an integer, 0 if it is none.
func number(v jsonscan.Value) int64 {
	n, err := strconv.ParseInt(string(v.Text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
