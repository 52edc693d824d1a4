package sglang

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseBaseURLGivesOneSpellingPerEngine(t *testing.T) {
	cases := map[string]struct{ raw, url, hostPort string }{
		"no slash":                         {"http://b", "http://b", "b:80"},
		"one slash":                        {"http://b/", "http://b", "b:80"},
		"two slashes":                      {"http://b//", "http://b", "b:80"},
		"IPv6 with a port and a slash":     {"http://[::1]:3000/", "http://[::1]:3000", "[::1]:3000"},
		"IPv6 without a port":              {"http://[2001:DB8:0:0::1]", "http://[2001:db8::1]", "[2001:db8::1]:80"},
		"IPv4 inside IPv6":                 {"http://[::ffff:10.0.0.7]:30000", "http://10.0.0.7:30000", "10.0.0.7:30000"},
		"upper case":                       {"HTTP://Node-A.Example:30000", "http://node-a.example:30000", "node-a.example:30000"},
		"a root dot":                       {"http://node-a.example.:30000", "http://node-a.example:30000", "node-a.example:30000"},
		"a port with zeros before it":      {"http://b:0080", "http://b:80", "b:80"},
		"https has its own default port":   {"https://b", "https://b", "b:443"},
		"an underscore in a name":          {"http://rl_engine_1:30000", "http://rl_engine_1:30000", "rl_engine_1:30000"},
		"a default port that is spelt out": {"http://b:80/", "http://b:80", "b:80"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseBaseURL(c.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != c.url || got.HostPort() != c.hostPort {
				t.Errorf("got %s and %s, want %s and %s", got, got.HostPort(), c.url, c.hostPort)
			}
		})
	}
}

func TestParseBaseURLNamesTheFieldItRefuses(t *testing.T) {
	cases := map[string]struct{ raw, field string }{
		"empty":                     {"", "scheme"},
		"no scheme":                 {"10.0.0.7", "scheme"},
		"another scheme":            {"grpc://b:30000", "scheme"},
		"a scheme without a host":   {"http:///", "host"},
		"an opaque URL":             {"http:b", "host"},
		"a path":                    {"http://b/v1", "path"},
		"a path of encoded slashes": {"http://b/%2F", "path"},
		"a query":                   {"http://b/?x=1", "query"},
		"an empty query":            {"http://b/?", "query"},
		"a fragment":                {"http://b/#x", "fragment"},
		"an empty fragment":         {"http://b/#", "fragment"},
		"user info":                 {"http://me:secret@b", "user"},
		"port zero":                 {"http://b:0", "port"},
		"a port beyond 65535":       {"http://b:65536", "port"},
		"an empty port":             {"http://b:", "port"},
		"a port that is a word":     {"http://b:http", "url"},
		"an IPv6 zone":              {"http://[fe80::1%25eth0]:30000", "host"},
		"a comma in the host":       {"http://a,b", "host"},
		"a space":                   {"http://a b", "url"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseBaseURL(c.raw)
			refused, ok := errors.AsType[*URLError](err)
			if !ok {
				t.Fatalf("got error %v, want a *URLError", err)
			}
			if refused.Field != c.field {
				t.Errorf("got field %s (%v), want %s", refused.Field, err, c.field)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error repeats the password: %v", err)
			}
		})
	}
}

func TestParseBaseURLIsStableUnderItsOwnResult(t *testing.T) {
	host := rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z0-9]([a-zA-Z0-9-]{0,10}[a-zA-Z0-9])?(\.[a-z]{1,5}){0,2}`),
		rapid.Just("[::1]"), rapid.Just("[2001:DB8::A]"), rapid.Just("127.0.0.11"),
	)
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SampledFrom([]string{"http://", "https://"}).Draw(t, "scheme") + host.Draw(t, "host") +
			rapid.SampledFrom([]string{"", ":80", ":443", ":30000"}).Draw(t, "port") +
			rapid.StringMatching(`/{0,3}`).Draw(t, "slashes")
		once, err := ParseBaseURL(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		twice, err := ParseBaseURL(once.String())
		if err != nil || twice != once {
			t.Fatalf("%s became %v, then %v (%v)", raw, once, twice, err)
		}
		if strings.HasSuffix(once.String(), "/") {
			t.Fatalf("%s ends in a slash", once)
		}
		if joined := once.join("/health"); strings.Contains(strings.TrimPrefix(joined, "https://"), "//health") {
			t.Fatalf("%s has two slashes", joined)
		}
	})
}

func FuzzParseBaseURL(f *testing.F) {
	for _, seed := range []string{"http://b", "http://[::1]:3000/", "http://b//", "http://u:p@b?x#y", "http://[::ffff:1.2.3.4]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		base, err := ParseBaseURL(raw)
		if err != nil {
			return
		}
		again, err := ParseBaseURL(base.String())
		if err != nil || again != base {
			t.Fatalf("%q became %v, then %v (%v)", raw, base, again, err)
		}
	})
}
