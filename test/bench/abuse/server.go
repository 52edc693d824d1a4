package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/berthmaster/berthmaster/internal/certs"
	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// room is how many connections the server takes.
const room = 16_384

// known lets those in who show the token.
type known struct{}

// Authorize is Authenticate: whoever is known may do everything.
func (k known) Authorize(r *http.Request, _ router.PoolKey, _ router.SenderName) error {
	return k.Authenticate(r)
}

// Authenticate wants the token.
func (known) Authenticate(r *http.Request) error {
	if r.Header.Get("Authorization") == bearer {
		door.LetIn(r.Context())
		return nil
	}
	return &router.Refusal{Reason: server.ReasonUnauthenticated, Detail: "say who calls"}
}

// Admit lets them go on for as long as they like.
func (k known) Admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (still func(context.Context) error, err error) {
	return func(context.Context) error { return nil }, k.Authorize(r, pool, sender)
}

// serve is the life of the process with the server: the lease API and the proxy of one pool, as the manager
// has them. It tells where it listens, and ends with the parent process.
func serve(ctx context.Context) error {
	pools, err := newPools()
	if err != nil {
		return err
	}
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: bytes.Repeat([]byte{1}, 32)}, Authorizer: known{}})
	if err != nil {
		return err
	}
	defer api.Close()
	transparent, err := proxy.New(proxy.Config{Pools: pools, Authorizer: known{}})
	if err != nil {
		return err
	}
	pair, err := certificate()
	if err != nil {
		return err
	}
	holder := &certs.Holder{}
	holder.Use(&certs.Material{Certificate: pair})
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	entrance := door.New(room)
	h := api.HTTPServer()
	h.ConnState, h.ConnContext = entrance.WatchJudged, entrance.Context
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if proxy.Matches(r.URL.Path) {
			transparent.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
	fmt.Println(l.Addr().String())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		_ = h.Close()
	}()
	if err := h.Serve(door.Count(tls.NewListener(entrance.Guard(l), holder.Server()), h.ErrorLog)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newPools has one pool of sixteen backends.
func newPools() (*router.Pools, error) {
	now := time.Now()
	table := router.NewTable("policy", nil, now)
	table.Lead(1, router.Takeover{}, now)
	f := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	f.Config.Retention = 10 * time.Second
	for i := range 16 {
		f.Members = append(f.Members, router.Member{
			Name: router.BackendName(fmt.Sprint("sglang-", i)), Incarnation: router.Incarnation(fmt.Sprintf("pod-%d/c-1", i)),
			URL: fmt.Sprintf("http://10.0.0.%d:30000", i+1), Capacity: 4096,
		})
	}
	if err := table.Apply(f, now); err != nil {
		return nil, err
	}
	for _, m := range f.Members {
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1}, now)
	}
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "bench", Name: "policy"}, table)
	return pools, nil
}

// certificate is of the kind that the manager makes for itself.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
