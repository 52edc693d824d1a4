package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

const (
	proxyPath = "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy"
	// holdHeader asks the engine to keep its stream open after the first event.
	holdHeader = "X-Bench-Hold"
	plainReply = `{"text":"a reply of some words","output_ids":[1,2,3,4,5,6,7,8],"meta_info":{"id":"r","finish_reason":{"type":"stop","matched":2},` +
		`"prompt_tokens":120,"weight_version":"step-41","completion_tokens":8,"cached_tokens":100,"e2e_latency":0.01}}`
	event = `data: {"text":"a","meta_info":{"id":"r","finish_reason":null,"prompt_tokens":120,"weight_version":"step-41","completion_tokens":1}}` + "\n\n"
	mark  = "data: [DONE]\n\n"
)

// engineHandler answers as an engine does that generates in no time.
func engineHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, plainReply)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, event)
		_ = http.NewResponseController(w).Flush()
		if r.Header.Get(holdHeader) != "" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, mark)
	})
}

// bareProxy is what the standard library has, with connections enough.
func bareProxy(engine string) http.Handler {
	to, err := url.Parse(engine)
	if err != nil {
		panic(fmt.Sprintf("the conductor gave %q for the engine: %v", engine, err))
	}
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true},
	}
}

// leasingProxy is the product's, before a pool of one backend that takes everything.
func leasingProxy(engine string) (http.Handler, error) {
	now := time.Now()
	table := router.NewTable("uid", nil, now)
	err := table.Apply(router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
		Members: []router.Member{{Name: "b", Incarnation: "b/1", URL: engine, Capacity: 1 << 20}},
	}, now)
	if err != nil {
		return nil, err
	}
	table.Lead(1, router.Takeover{}, now)
	table.Observe(router.Observation{Incarnation: "b/1", Seq: 1, Health: router.Healthy}, now)
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, table)
	return proxy.New(proxy.Config{Pools: pools})
}
