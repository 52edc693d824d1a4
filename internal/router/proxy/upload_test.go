package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
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
		if _, err := io.ReadAll(c); err != nil {
			t.Fatalf("the connection stays open: %v", err)
		}
	}
	eventually(t, "nothing stays counted", func() bool { return g.counted() == 0 })
}
