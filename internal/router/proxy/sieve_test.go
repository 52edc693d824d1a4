package proxy

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestASievePassesWhatItNamesAndNothingElse(t *testing.T) {
	rank := flat("rate")
	rank["memory"] = flat("tokens")
	s := flat("model", "size", "limit", "ready")
	s["ranks"] = rank
	for name, c := range map[string]struct{ text, want string }{
		"strings, numbers, booleans and null":  {`{"model":"m","size":4,"limit":null,"ready":true}`, `{"limit":null,"model":"m","ready":true,"size":4}`},
		"a number as it was written":           {`{"size":10000000000000000000001}`, `{"size":10000000000000000000001}`},
		"members that it does not name":        {`{"api_key":"k","model":"m","new_secret":"k"}`, `{"model":"m"}`},
		"a name in another case":               {`{"MODEL":"k","model":"m"}`, `{"model":"m"}`},
		"a name that is written otherwise":     {`{"\u006dodel":"m"}`, `{"model":"m"}`},
		"members below a member that has none": {`{"model":{"api_key":"k"},"size":["k"]}`, `{}`},
		"a list of objects":                    {`{"ranks":[{"rate":1,"api_key":"k"},{"rate":2}]}`, `{"ranks":[{"rate":1},{"rate":2}]}`},
		"an object for a list":                 {`{"ranks":{"rate":1,"api_key":"k"}}`, `{"ranks":{"rate":1}}`},
		"objects in lists, below":              {`{"ranks":[{"memory":{"tokens":7,"api_key":"k"}}]}`, `{"ranks":[{"memory":{"tokens":7}}]}`},
		"what is no object in a list":          {`{"ranks":["k",1,null,[{"rate":1}]]}`, `{"ranks":[]}`},
		"a text where members should be":       {`{"ranks":"k"}`, `{}`},
		"nothing":                              {" {\n} ", `{}`},
		"lists without end":                    {`{"ranks":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, `{"ranks":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := s.of([]byte(c.text))
			if !ok || string(got) != c.want {
				t.Errorf("got %s, %t; want %s", got, ok, c.want)
			}
		})
	}
	for _, text := range []string{"", "k", `"k"`, `[{"model":"m"}]`, `{"model":"m"`, `{"model":"m"}k`, "null"} {
		if got, ok := s.of([]byte(text)); ok {
			t.Errorf("%q passes as %s", text, got)
		}
	}
}

func TestNothingThatIsToldOfAnEngineIsNamedLikeASecret(t *testing.T) {
	var look func(s sieve)
	look = func(s sieve) {
		for name, below := range s {
			for _, part := range []string{"key", "password", "passwd", "secret", "credential", "auth", "token_file", "host", "url", "addr", "config", "args"} {
				if strings.Contains(name, part) {
					t.Errorf("%s is told", name)
				}
			}
			look(below)
		}
	}
	look(aboutServer())
	if _, ok := aboutServer().pass(json.RawMessage(`{"tp_size":8}`)); !ok {
		t.Error("nothing is told at all")
	}
}
