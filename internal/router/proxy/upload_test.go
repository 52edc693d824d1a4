package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

func TestABodyThatStopsComingIsGivenUpAndKeepsNobodyFromBeingServed(t *testing.T) {
	engine, _ := simulated(t, enginesim.Config{})
	g := newRig(t, proxy.Config{Limits: proxy.Limits{Upload: 50 * time.Millisecond}}, engine)
	at, err := url.Parse(g.base)
	if err != nil {
		t.Fatal(err)
	}
	var slow []net.Conn
	for range 50 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "POST %s/generate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"text\":\"", at.Path)
		slow = append(slow, c)
	}
	if status, text := g.post("/generate", `{"text":"hello"}`); status != 200 {
		t.Errorf("a client with a body of its own: %d %s", status, text)
	}
	for _, c := range slow {
		answer, err := io.ReadAll(c)
		if err != nil {
			t.Fatalf("the connection stays open: %v", err)
		}
		if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), "RequestTimeout") {
			t.Fatalf("a client that stopped was answered %q, want 408 RequestTimeout", answer)
		}
	}
	eventually(t, "nothing stays counted", func() bool { return g.counted() == 0 })
}

func TestARefusedBodyThatStopsComingIsGivenUpToo(t *testing.T) {
	engine, _ := simulated(t, enginesim.Config{})
	g := newRig(t, proxy.Config{Limits: proxy.Limits{Upload: 50 * time.Millisecond, BodyBytes: 1000}}, engine)
	at, err := url.Parse(g.base)
	if err != nil {
		t.Fatal(err)
	}
	for name, head := range map[string]string{
		"too long":   "Content-Length: 100000\r\n\r\n{\"text\":\"",
		"compressed": "Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n1f8b",
		"in chunks":  "Transfer-Encoding: chunked\r\n\r\n3\r\n]]]\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(c, "POST %s/generate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%s", at.Path, head)
			answer, err := io.ReadAll(c)
			if err != nil {
				t.Fatalf("the connection stays open after %q: %v", answer, err)
			}
			if !strings.HasPrefix(string(answer), "HTTP/1.1 4") || !strings.Contains(string(answer), "application/problem+json") {
				t.Errorf("the client was answered %q, want a refusal that says why", answer)
			}
		})
	}
	eventually(t, "nothing stays counted", func() bool { return g.counted() == 0 })
}
