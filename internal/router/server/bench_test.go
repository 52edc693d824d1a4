package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	body   []byte
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { s.body = append(s.body[:0], p...); return len(p), nil }

// BenchmarkAcquireAndRelease is a turn without its network: what http_lease_vs_noop is made of.
func BenchmarkAcquireAndRelease(b *testing.B) {
	pools := router.NewPools()
	table := router.NewTable("6f1c2a7e-0000-4000-8000-000000000000", nil, time.Now())
	table.Lead(1, router.Takeover{}, time.Now())
	f := router.Fleet{Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}}}
	f.Config.Retention = time.Second
	for i := range 16 {
		f.Members = append(f.Members, member(i))
	}
	if err := table.Apply(f, time.Now()); err != nil {
		b.Fatal(err)
	}
	for i, m := range f.Members {
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: uint64(i + 1), Health: router.Healthy, EngineTotal: -1}, time.Now())
	}
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, table)
	s, err := New(Config{Pools: pools, Keys: Keys{Current: key(1)}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	out := &sink{header: http.Header{}}
	body := bytes.NewReader(nil)
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/", io.NopCloser(body))
	if err != nil {
		b.Fatal(err)
	}
	post := func(path string, raw []byte) {
		body.Reset(raw)
		req.URL.Path, req.ContentLength = pathPrefix+"rl/inferencepools/policy/"+path, int64(len(raw))
		s.ServeHTTP(out, req)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		post("leases", fmt.Appendf(nil, `{"requestID":"worker-00000001-%012d","sessionID":"worker-00000001-s%d","sender":"train","senderGeneration":1,"epoch":1}`, i, i/29))
		_, rest, found := bytes.Cut(out.body, []byte(`"token":"`))
		if !found {
			b.Fatal(string(out.body))
		}
		post(fmt.Sprintf("leases/worker-00000001-%012d/release", i), fmt.Appendf(nil, `{"token":"%s,"outcome":"Succeeded","outputTokens":512}`, bytes.TrimSuffix(rest, []byte("}"))))
		if !bytes.Contains(out.body, []byte(`"Succeeded"`)) {
			b.Fatal(string(out.body))
		}
	}
}
