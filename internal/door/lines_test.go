package door

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// through is a visitor by TLS, or without.
func (v *visitor) through(secure *tls.Config) *visitor {
	v.t.Helper()
	if secure == nil {
		return v
	}
	c, ended := v.greet()
	if err := <-ended; err != nil {
		v.t.Fatal(err)
	}
	c.reads = bufio.NewReader(c)
	return c
}

// say writes text, as much of it as the server wants to hear.
func (v *visitor) say(text string) { _, _ = io.WriteString(v, text) }

// status is that of the next answer; 0: there is none.
func (v *visitor) status() int {
	r, err := http.ReadResponse(v.reads, nil)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return 0
	}
	return r.StatusCode
}

// headers are so many lines.
func headers(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "A%d:\n", i)
	}
	return out.String()
}

func TestHeadersOfTooManyLinesAreRefusedBeforeTheirEnd(t *testing.T) {
	for name, secure := range map[string]*tls.Config{"without TLS": nil, "by TLS": certified(t)} {
		for whose, p := range map[string]*place{"judged": judging(t, 1000, secure), "not judged": open(t, 1000, secure)} {
			v := p.from("127.0.0.2").through(secure)
			v.say("GET / HTTP/1.1\r\nHost: a\r\n" + headers(mostLines) + "A: there is more to come")
			if s := v.status(); s != http.StatusBadRequest {
				t.Errorf("%s, %s: %d lines: %d", name, whose, mostLines+2, s)
			}
			v = p.from("127.0.0.2").through(secure)
			v.say("GET / HTTP/1.1\r\nHost: a\r\n" + headers(mostLines-4) + "\r\n")
			if s := v.status(); s != http.StatusOK {
				t.Errorf("%s, %s: %d lines: %d", name, whose, mostLines-1, s)
			}
		}
	}
}

func TestLinesAreCountedForEachCallByItself(t *testing.T) {
	p := judging(t, 1000, nil)
	v := p.from("127.0.0.2")
	for i := range 10 {
		v.say("GET / HTTP/1.1\r\nHost: a\r\n" + headers(mostLines/4) + "\r\n")
		if s := v.status(); s != http.StatusOK {
			t.Fatalf("call %d: %d", i, s)
		}
	}
}

func TestWhoeverIsLetInSendsABodyOfAnyNumberOfLines(t *testing.T) {
	const length = 100_000
	// With this expectation the server says when it begins to read the body.
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n", length)
	for name, c := range map[string]struct {
		place *place
		head  string
		ends  bool
	}{
		"somebody who is let in":        {judging(t, 1000, nil), head + "Authorization: ann\r\n\r\n", false},
		"a stranger":                    {judging(t, 1000, nil), head + "\r\n", true},
		"anybody where nobody is asked": {open(t, 1000, nil), head + "\r\n", false},
	} {
		v := c.place.from("127.0.0.2")
		v.say(c.head)
		if s := v.status(); s != http.StatusContinue {
			t.Fatalf("%s: %d", name, s)
		}
		v.say(strings.Repeat("\n", length))
		first := v.status()
		v.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if second := v.status(); !c.ends && (first != http.StatusOK || second != http.StatusOK) || c.ends && second != 0 {
			t.Errorf("%s: answered %d, and %d afterwards", name, first, second)
		}
		v.say("GET / HTTP/1.1\r\nHost: a\r\n" + headers(2*mostLines))
		if third := v.status(); third == http.StatusOK {
			t.Errorf("%s: lines are not counted any more", name)
		}
	}
}

func TestAHandshakeThatFailsIsToldInTheWordsOfTheStandardLibrary(t *testing.T) {
	p := open(t, 1000, certified(t))
	v := p.from("127.0.0.2")
	v.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	text, err := io.ReadAll(v.reads)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.0 400 ") || !strings.Contains(string(text), "TLS") {
		t.Errorf("somebody without TLS is told %q, %v", text, err)
	}
	p.until("it is told", func(Counts) bool {
		return strings.HasPrefix(p.told.String(), "http: TLS handshake error from 127.0.0.2:")
	})
}
