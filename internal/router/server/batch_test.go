package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

func (w *world) batch(requests ...object) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases:batch", object{"requests": requests})
}

// results are the entries of a batch's answer.
func (r reply) results() []reply {
	list, _ := r.body["results"].([]any)
	var out []reply
	for _, v := range list {
		o, _ := v.(object)
		status, _ := o["status"].(float64)
		body, _ := o["lease"].(object)
		if p, ok := o["problem"].(object); ok {
			body = p
		}
		out = append(out, reply{status: int(status), body: body, raw: fmt.Sprint(o)})
	}
	return out
}

func TestABatchAnswersEachAcquireByItself(t *testing.T) {
	w := newWorld(t, 4)
	held := w.lease("r0", "s0")
	r := w.batch(
		ask("r1", "s1"), ask("r0", "s0"), ask("", "s2"), ask("r3", "s3", object{"sender": "nobody"}),
		ask("r4", "s4", object{"waitSeconds": 1}), ask("r5", "s5", object{"colour": "red"}), ask("r6", "s6"),
	)
	if r.status != http.StatusOK {
		t.Fatal(r.raw)
	}
	got := r.results()
	var said []string
	for _, e := range got {
		said = append(said, fmt.Sprint(e.status, " ", e.reason(), " ", e.text("field")))
	}
	if diff := cmp.Diff([]string{
		"201  ", "200  ", "400 Invalid requestID", "403 SenderUnknown sender", "400 Invalid waitSeconds", "400 Invalid colour", "201  ",
	}, said); diff != "" {
		t.Fatal(diff)
	}
	if got[1].text("rid") != held.text("rid") || got[0].text("token") == "" {
		t.Error(r.raw)
	}
	if n := w.outstanding(); n != 3 {
		t.Errorf("%d counted", n)
	}
}

func TestABatchSpreadsOverBackendsLikeSingleAcquires(t *testing.T) {
	w := newWorld(t, 4)
	var many []object
	for i := range 40 {
		many = append(many, ask(fmt.Sprint("r", i), fmt.Sprint("s", i)))
	}
	w.batch(many...)
	for _, b := range w.snapshot().Backends {
		if b.Outstanding != 10 {
			t.Errorf("%s counts %d", b.Name, b.Outstanding)
		}
	}
}

func TestABatchNeverWaits(t *testing.T) {
	w := newWorld(t, 1)
	w.change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
	e := w.batch(ask("r1", "s1")).results()
	if len(e) != 1 || e[0].status != http.StatusLocked || e[0].text("retryAfterSeconds") != "1" {
		t.Fatal(e)
	}
}

func TestAnIllFormedBatchIsRefusedWhole(t *testing.T) {
	w := newWorld(t, 1)
	for name, c := range map[string]invalidCase{
		"no requests":              {"requests", object{}},
		"an empty list":            {"requests", object{"requests": []object{}}},
		"requests not in a list":   {"requests", object{"requests": ask("r1", "s1")}},
		"an unknown field":         {"waitSeconds", object{"requests": []object{ask("r1", "s1")}, "waitSeconds": 1}},
		"more than 512":            {"requests", object{"requests": make([]int, 513)}},
		"a list without a wrapper": {"body", `[{}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.do(http.MethodPost, w.pool+"/leases:batch", c.body)
			want(t, r, http.StatusBadRequest, "Invalid")
			if r.text("field") != c.field {
				t.Errorf("field %q, want %q: %s", r.text("field"), c.field, r.raw)
			}
		})
	}
}
