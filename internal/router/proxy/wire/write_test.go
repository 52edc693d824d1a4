package wire

import (
	"errors"
	"testing"
)

func TestNothingIsWrittenThatWouldBeginAnotherLineOrRequest(t *testing.T) {
	for _, target := range []string{"/a b", "/a HTTP/1.1\r\nX: y", "/a\n", "/\x00"} {
		if _, err := appendHead(nil, &Request{Method: "GET", Target: target}, "h"); !errors.Is(err, errUnsafe) {
			t.Errorf("%q: %v", target, err)
		}
	}
	if _, err := appendHead(nil, &Request{Method: "GET", Target: "/a?b=c%20d"}, "h"); err != nil {
		t.Error(err)
	}
}
