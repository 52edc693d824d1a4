package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/test/local"
)

const (
	engines = 4
	speed   = 20
)

func main() {
	log.SetLogger(logr.Discard()) // the API client's own complaints come back as errors
	var c local.Config
	rounds := flag.Int("rounds", 5, "how often the leader is taken away")
	seed := flag.Uint64("seed", 1, "chooses the moments")
	flag.StringVar(&c.Root, "root", ".", "the project's folder")
	flag.StringVar(&c.Bin, "bin", "bin", "folder with manager and sglang-sim")
	flag.StringVar(&c.Assets, "assets", "bin/k8s", "folder with etcd, kube-apiserver and kubectl")
	flag.StringVar(&c.Work, "work", filepath.Join(".cache", "chaos"), "folder for logs and state")
	flag.Parse()
	c.Engines, c.FirstAddress, c.Speed, c.Replicas = engines, netip.MustParseAddr("127.0.0.61"), speed, 2
	c.Say = func(line string) { fmt.Println(line) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, *rounds, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}
