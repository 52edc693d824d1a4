package traces

import "testing"

func acquired(more ...Span) []Span {
	return append([]Span{{ID: "a", Name: "acquire", Attributes: map[string]string{"berthmaster.request": "r1"}}, released("1")}, more...)
}

func released(term string) Span {
	return Span{ID: "r" + term, Parent: "a", Name: "release", Attributes: map[string]string{"berthmaster.request": "r1", "berthmaster.term": term}}
}

func TestTheShapeOfALeaseIsRecognisedAndNothingElse(t *testing.T) {
	if err := Lease(acquired(Span{ID: "w", Parent: "a", Name: "wait"}, Span{ID: "n", Parent: "a", Name: "renew"})); err != nil {
		t.Errorf("a lease is none: %v", err)
	}
	if err := Lease(acquired(released("2"))); err != nil {
		t.Errorf("a lease whose first release was not answered is none: %v", err)
	}
	refused := released("1")
	refused.Attributes["berthmaster.reason"] = "NoLeader"
	if err := Lease(acquired(refused)); err != nil {
		t.Errorf("a lease whose first release was refused is none: %v", err)
	}
	for name, spans := range map[string][]Span{
		"a refused release only":     {acquired()[0], refused},
		"nothing":                    nil,
		"no release":                 acquired()[:1],
		"no acquire":                 acquired()[1:],
		"two releases of one term":   acquired(released("1")),
		"another request's":          acquired(Span{ID: "x", Parent: "a", Name: "renew", Attributes: map[string]string{"berthmaster.request": "r2"}}),
		"two roots":                  acquired(Span{ID: "b", Name: "acquire"}),
		"a renewal below a stranger": acquired(Span{ID: "n", Parent: "z", Name: "renew"}),
	} {
		if Lease(spans) == nil {
			t.Errorf("%s passes for a lease", name)
		}
	}
}

func TestTheShapeOfAProxiedCallIsRecognisedAndNothingElse(t *testing.T) {
	good := []Span{{ID: "p", Parent: "c", Name: "proxy"}, {Parent: "p", Name: "acquire"}, {Parent: "p", Name: "generate"}, {Parent: "p", Name: "release"}}
	if err := Proxied(good, "c"); err != nil {
		t.Errorf("a proxied call is none: %v", err)
	}
	for name, spans := range map[string][]Span{"no exchange": {good[0], good[1], good[3]}, "no call": good[1:], "beside the call": {good[0], good[1], {Parent: "c", Name: "generate"}, good[3]}} {
		if Proxied(spans, "c") == nil {
			t.Errorf("%s passes for a proxied call", name)
		}
	}
	if Proxied(good, "d") == nil {
		t.Error("a call below another caller passes")
	}
}

func TestAContextIsTakenApart(t *testing.T) {
	trace, span, ok := Context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if !ok || trace != "0af7651916cd43dd8448eb211c80319c" || span != "b7ad6b7169203331" {
		t.Error(trace, span, ok)
	}
	if _, _, ok := Context("00-1-2-3"); ok {
		t.Error("no context passes for one")
	}
}
