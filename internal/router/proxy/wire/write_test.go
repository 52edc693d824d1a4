package wire

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestNothingIsWrittenThatWouldBeginAnotherLineOrRequest(t *testing.T) {
	fine := func() *Request {
		return &Request{Method: http.MethodPost, Target: "/a?b=c%20d", Header: http.Header{"X-A": {"b c", ""}}, Body: strings.NewReader(""), Length: 0}
	}
	for name, spoil := range map[string]func(*Request){
		"a space in the target":                    func(r *Request) { r.Target = "/a b" },
		"a line in the target":                     func(r *Request) { r.Target = "/a HTTP/1.1\r\nX: y" },
		"a bare line feed in the target":           func(r *Request) { r.Target = "/a\n" },
		"a null byte in the target":                func(r *Request) { r.Target = "/\x00" },
		"a space in the method":                    func(r *Request) { r.Method = "GET /x HTTP/1.1" },
		"a line in the method":                     func(r *Request) { r.Method = "GET\r\n" },
		"a line in a value":                        func(r *Request) { r.Header["X-A"] = []string{"b\r\nX-B: c"} },
		"a request in a value":                     func(r *Request) { r.Header["X-A"] = []string{"b\r\n\r\nGET /admin HTTP/1.1\r\nHost: h"} },
		"a bare line feed in a value":              func(r *Request) { r.Header["X-A"] = []string{"b\nX-B: c"} },
		"a bare carriage return in a value":        func(r *Request) { r.Header["X-A"] = []string{"b\rX-B: c"} },
		"a line feed at the end of a value":        func(r *Request) { r.Header["X-A"] = []string{"b\n"} },
		"a null byte in a value":                   func(r *Request) { r.Header["X-A"] = []string{"b\x00"} },
		"a line in the last of several values":     func(r *Request) { r.Header["X-A"] = []string{"b", "c", "d\r\nX-B: e"} },
		"a line in a value of another header":      func(r *Request) { r.Header["X-B"] = []string{"\r\nX-C: d"} },
		"a line in a name":                         func(r *Request) { r.Header["X-A: b\r\nX-B"] = []string{"c"} },
		"a bare line feed in a name":               func(r *Request) { r.Header["X-A\nX-B"] = []string{"c"} },
		"a bare carriage return in a name":         func(r *Request) { r.Header["X-A\rX-B"] = []string{"c"} },
		"a null byte in a name":                    func(r *Request) { r.Header["X-A\x00"] = []string{"c"} },
		"a line in the value of the authorization": func(r *Request) { r.Header["Authorization"] = []string{"Bearer k\r\nX-B: c"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := fine()
			spoil(r)
			if out, err := appendHead(nil, r, "h"); !errors.Is(err, errUnsafe) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	out, err := appendHead(nil, fine(), "h")
	if want := "POST /a?b=c%20d HTTP/1.1\r\nHost: h\r\nX-A: b c\r\nX-A: \r\nContent-Length: 0\r\n\r\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

func TestHeadersThatSayWhereARequestEndsAreTheProxysOwn(t *testing.T) {
	head := http.Header{
		"Host": {"evil"}, "Content-Length": {"0"}, "Transfer-Encoding": {"chunked"}, "Connection": {"close"}, "Expect": {"100-continue"},
		"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}, "X-A": {"b"},
	}
	out, err := appendHead(nil, &Request{Method: http.MethodPost, Target: "/a", Header: head, Body: bytes.NewReader(make([]byte, 7)), Length: 7}, "h")
	if want := "POST /a HTTP/1.1\r\nHost: h\r\nX-A: b\r\nContent-Length: 7\r\n\r\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}
