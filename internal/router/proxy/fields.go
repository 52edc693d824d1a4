package proxy

import (
	"strconv"
	"strings"

	"github.com/berthmaster/berthmaster/internal/router/proxy/jsonscan"
)

// fields is what the proxy reads of a request's body, in passing.
type fields struct {
	route route
	// session and user are the body's members of these names; empty: none.
	session, user string
	// prompts is how many prompts the body holds: 1, or the length of a list.
	prompts int64
	batch   batch
	samples int64
	shape   shape
	// prompt is where the first prompt stands, for prefix affinity.
	prompt span
	// rids are where the values of rid stand, in order.
	rids []span
	// open is where the first member may be put; empty says whether others follow.
	open    int64
	members int
	// trouble says why the body cannot be leased for; empty: it can.
	trouble string
}

// shape is what the document is.
type shape uint8

const (
	noObject shape = iota
	anObject
)

// batch says whether the engine sees one prompt or a list.
type batch uint8

const (
	onePrompt batch = iota
	listOfPrompts
)

// span is a part of the body, from its first byte to the one behind its last.
type span struct{ from, to int64 }

// maxRIDs bounds how often a body may name its rid; once is what clients do.
const maxRIDs = 8

func newFields(r route) *fields { return &fields{route: r, prompts: 1, samples: 1} }

// Enter looks into the document itself and into what tells how many sequences there are.
func (f *fields) Enter(p *jsonscan.Path) jsonscan.Interest {
	switch p.Depth() {
	case 0:
		return jsonscan.Look
	case 1:
		if f.isInput(p.Key(1)) || f.route.samples == "sampling_params" && p.Is("sampling_params") {
			return jsonscan.Look
		}
	case 2:
		// One set of parameters per prompt; or vectors, one or several of them.
		if p.Is("sampling_params", jsonscan.Any) || p.Is("input_embeds", jsonscan.Any) && p.Index(2) == 0 {
			return jsonscan.Look
		}
	}
	return jsonscan.Skip
}

func (f *fields) isInput(name string) bool {
	for _, in := range f.route.inputs {
		if in == name {
			return true
		}
	}
	return false
}

// Visit takes note of a value. A member that stands there twice counts with the larger number and
// the last text, whichever of them the engine takes.
func (f *fields) Visit(p *jsonscan.Path, v jsonscan.Value) {
	switch p.Depth() {
	case 0:
		f.document(v)
	case 1:
		f.member(p.Key(1), v)
	case 2:
		if p.Is("sampling_params", "n") {
			f.sampled(v)
		}
		if p.Is("input_embeds", jsonscan.Any) && p.Index(2) == 0 && v.First == jsonscan.Array {
			f.batch = listOfPrompts
		}
	case 3:
		if p.Is("sampling_params", jsonscan.Any, "n") {
			f.sampled(v)
		}
	}
}

func (f *fields) document(v jsonscan.Value) {
	f.open, f.members = v.Start+1, v.Count
	if v.Kind == jsonscan.Object {
		f.shape = anObject
	}
}

func (f *fields) member(name string, v jsonscan.Value) {
	switch {
	case name == "session_id":
		f.session = f.text(name, v)
	case name == "user":
		f.user = f.text(name, v)
	case name == "rid":
		if len(f.rids) == maxRIDs {
			f.trouble = "rid stands in it too often"
			return
		}
		f.rids = append(f.rids, span{v.Start, v.End})
	case name == "n" && f.route.samples == "n":
		f.sampled(v)
	case f.isInput(name):
		f.input(name, v)
	case name == "messages" || name == "input":
		f.prompt = span{v.Start, v.End}
	}
}

// text is a session key; one that is too long to be kept cannot be told from others.
func (f *fields) text(name string, v jsonscan.Value) string {
	if v.Kind != jsonscan.String {
		return ""
	}
	if v.Complete == jsonscan.Cut {
		f.trouble = name + " is longer than " + strconv.Itoa(jsonscan.MaxText) + " bytes"
		return ""
	}
	return string(v.Text)
}

func (f *fields) sampled(v jsonscan.Value) {
	if v.Kind != jsonscan.Number && v.Kind != jsonscan.String {
		return // null is the default, and true is one
	}
	// A number in quotes is a number to lenient engines.
	n, err := strconv.ParseInt(strings.TrimSpace(string(v.Text)), 10, 64)
	if err != nil {
		f.trouble = "n must be an integer"
		return
	}
	f.samples = max(f.samples, n)
}

// input notes the prompts of one member. A list of numbers is one prompt of tokens, a list of
// anything else is a list of prompts; of vectors one level more is one prompt.
func (f *fields) input(name string, v jsonscan.Value) {
	if v.Kind == jsonscan.String || v.Kind == jsonscan.Array {
		f.prompt = span{v.Start, v.End}
	}
	if v.Kind != jsonscan.Array || v.First == jsonscan.Number {
		return
	}
	if name != "input_embeds" {
		f.batch = listOfPrompts
	}
	if f.batch == listOfPrompts {
		f.prompts = max(f.prompts, int64(v.Count))
	}
}

// executions is how many sequences the request generates.
func (f *fields) executions() int64 {
	const most = 1 << 20 // beyond any limit, and far from overflow
	return min(f.prompts, most) * min(f.samples, most)
}
