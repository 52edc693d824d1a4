package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// invalidCase is a body that is refused, and the field that the refusal names.
type invalidCase struct {
	field string
	body  any
}

func acquireFaults() map[string]invalidCase {
	long := strings.Repeat("x", 129)
	return map[string]invalidCase{
		"an empty body":                           {"body", ""},
		"no JSON":                                 {"body", "requestID=r1"},
		"a JSON list":                             {"body", "[]"},
		"a JSON null":                             {"body", "null"},
		"JSON that breaks off":                    {"body", `{"requestID":"r1"`},
		"two JSON objects":                        {"body", `{"requestID":"r1"}{}`},
		"a body over 64 KiB":                      {"body", `{"requestID":"` + strings.Repeat("x", 64<<10) + `"}`},
		"an unknown field":                        {"retries", ask("r1", "s1", object{"retries": 3})},
		"an unknown field of the last backend":    {"lastBackend.zone", ask("r1", "s1", object{"lastBackend": object{"zone": "a"}})},
		"a field twice":                           {"sender", `{"requestID":"r1","sender":"train","sender":"eval"}`},
		"a field in other capitals":               {"RequestID", `{"RequestID":"r1"}`},
		"a field without a name":                  {"body", `{"":1}`},
		"a field with an endless name":            {strings.Repeat("é", 32), `{"` + strings.Repeat("é", 999) + `":1}`},
		"a comma too many":                        {"body", `{"requestID":"r1",}`},
		"text that is not UTF-8":                  {"body", "{\"requestID\":\"r\xff\"}"},
		"a field of the wrong kind":               {"epoch", ask("r1", "s1", object{"epoch": "one"})},
		"a number with a fraction":                {"executions", ask("r1", "s1", object{"executions": 1.5})},
		"a number beyond 64 bits":                 {"epoch", `{"requestID":"r1","sessionID":"s1","sender":"train","epoch":99999999999999999999}`},
		"an empty request id":                     {"requestID", ask("", "s1")},
		"no request id":                           {"requestID", ask("r1", "s1", object{"requestID": nil})},
		"a request id of 129 bytes":               {"requestID", ask(long, "s1")},
		"a request id that begins with a dot":     {"requestID", ask(".r1", "s1")},
		"a request id with a slash":               {"requestID", ask("r/1", "s1")},
		"a request id beyond ASCII":               {"requestID", ask("ré", "s1")},
		"an empty session id":                     {"sessionID", ask("r1", "")},
		"a session id of 129 bytes":               {"sessionID", ask("r1", long)},
		"an empty sender":                         {"sender", ask("r1", "s1", object{"sender": ""})},
		"an ill-formed group":                     {"groupID", ask("r1", "s1", object{"groupID": "a b"})},
		"no executions":                           {"executions", ask("r1", "s1", object{"executions": 0})},
		"more executions than a request may have": {"executions", ask("r1", "s1", object{"executions": router.MaxExecutions + 1})},
		"a negative generation":                   {"senderGeneration", ask("r1", "s1", object{"senderGeneration": -1})},
		"no epoch":                                {"epoch", ask("r1", "s1", object{"epoch": nil})},
		"a last backend with too long a name":     {"lastBackend.name", ask("r1", "s1", object{"lastBackend": object{"name": strings.Repeat("b", 254)}})},
		"a negative time to wait":                 {"waitSeconds", ask("r1", "s1", object{"waitSeconds": -1})},
		"a longer wait than is offered":           {"waitSeconds", ask("r1", "s1", object{"waitSeconds": 601})},
	}
}

func TestInvalidAcquireNamesItsFieldAndChangesNothing(t *testing.T) {
	w := newWorld(t, 1)
	for name, c := range acquireFaults() {
		t.Run(name, func(t *testing.T) {
			r := w.do(http.MethodPost, w.pool+"/leases", c.body)
			want(t, r, http.StatusBadRequest, "Invalid")
			if r.text("field") != c.field || r.text("detail") == "" {
				t.Errorf("field %q, want %q: %s", r.text("field"), c.field, r.raw)
			}
			if v := w.snapshot(); v.Requests != 0 || v.Sessions != 0 {
				t.Errorf("%d requests and %d sessions are kept", v.Requests, v.Sessions)
			}
		})
	}
}

func TestInvalidRenewAndReleaseNameTheirField(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("r1", "s1").text("token")
	identity := object{"sessionID": "s1", "sender": "train", "senderGeneration": 3, "epoch": 1, "outcome": "NotSent"}
	with := func(o object, k string, v any) object {
		out := object{k: v}
		for name, old := range o {
			if _, set := out[name]; !set {
				out[name] = old
			}
		}
		return out
	}
	released := object{"token": token, "outcome": "Succeeded"}
	for name, c := range map[string]struct {
		path, field string
		body        any
	}{
		"a renewal without token":                     {"r1/renew", "token", object{}},
		"a renewal with an unknown field":             {"r1/renew", "ttlSeconds", object{"token": token, "ttlSeconds": 5}},
		"a renewal started perhaps":                   {"r1/renew", "started", object{"token": token, "started": "yes"}},
		"a renewal of an ill-formed id":               {"-r1/renew", "requestID", object{"token": token}},
		"a release without outcome":                   {"r1/release", "outcome", object{"token": token}},
		"a release with an unknown outcome":           {"r1/release", "outcome", object{"token": token, "outcome": "Fine"}},
		"a release with negative output":              {"r1/release", "outputTokens", with(released, "outputTokens", -1)},
		"a release with a negative prompt":            {"r1/release", "promptTokens", with(released, "promptTokens", -1)},
		"a release with a long version":               {"r1/release", "weightVersion", with(released, "weightVersion", strings.Repeat("v", 257))},
		"a release of another id than its path":       {"r1/release", "requestID", with(released, "requestID", "r2")},
		"a success without token":                     {"r1/release", "token", object{"outcome": "Succeeded"}},
		"an identity without session":                 {"r1/release", "sessionID", with(identity, "sessionID", "")},
		"an identity without epoch":                   {"r1/release", "epoch", with(identity, "epoch", 0)},
		"a release with a body that is not an object": {"r1/release", "body", `"Succeeded"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.do(http.MethodPost, w.pool+"/leases/"+c.path, c.body)
			want(t, r, http.StatusBadRequest, "Invalid")
			if r.text("field") != c.field {
				t.Errorf("field %q, want %q: %s", r.text("field"), c.field, r.raw)
			}
			if n := w.outstanding(); n != 1 {
				t.Errorf("%d counted", n)
			}
		})
	}
}

func TestAnIDOfTheFullLengthIsServed(t *testing.T) {
	w := newWorld(t, 1)
	id := strings.Repeat("x", 128)
	token := w.lease(id, id, object{"groupID": id}).text("token")
	if r := w.release(id, object{"token": token, "outcome": "Succeeded"}); r.status != http.StatusOK {
		t.Fatal(r.raw)
	}
}
