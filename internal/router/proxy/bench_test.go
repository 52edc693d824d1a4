package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// instant is an engine that costs nothing, so that what is left is the proxy's own.
type instant struct{ stream bool }

// Do reads the request and replies.
func (i instant) Do(_ context.Context, _ string, r *wire.Request) (*http.Response, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	resp := jsonReply(io.NopCloser(strings.NewReader(plainJSON)))
	if i.stream {
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = io.NopCloser(strings.NewReader(eventText))
	}
	return resp, nil
}

func BenchmarkProxysOwnPart(b *testing.B) {
	for name, stream := range map[string]bool{"plain": false, "stream": true} {
		b.Run(name, func(b *testing.B) {
			table := router.NewTable("uid", nil, time.Now())
			if err := table.Apply(router.Fleet{
				Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
				Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
				Members: []router.Member{{Name: "b0", Incarnation: "b0/1", URL: "http://b0", Capacity: 8}},
			}, time.Now()); err != nil {
				b.Fatal(err)
			}
			table.Lead(1, router.Takeover{}, time.Now())
			table.Observe(router.Observation{Incarnation: "b0/1", Seq: 1, Health: router.Healthy}, time.Now())
			pools := router.NewPools()
			pools.Put(rigKey, table)
			h, err := proxy.New(proxy.Config{Pools: pools, Transport: instant{stream}})
			if err != nil {
				b.Fatal(err)
			}
			body := fmt.Sprintf(`{"text":%q,"sampling_params":{"max_new_tokens":8}}`, strings.Repeat("some words ", 100))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy/generate", strings.NewReader(body))
				r.Header.Set("X-Session-ID", "s")
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
