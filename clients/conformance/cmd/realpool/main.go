// Command realpool runs a pool in earnest, on loopback: the router and its API, the prober, the settler
// and simulated engines. Its first line of output is the URL of its desk; it ends with its standard
// input.
//
//	GET  /          {"baseURL", "engines": {NAME: URL}}; engines take faults at /sim/faults
//	POST /fleet     {"access", "leasing", "epoch"}: changes what the pool's spec would say
//	POST /takeover  another router takes the pool over, in the next term
//	POST /verdict   waits until nothing is counted, then judges the engines' logs against the client's:
//	                {"client": [...]} -> {"turns", "executions", "violations": [...]}
//	GET  /counted   {"outstanding", "sessions", "started"}: what the router counts, and executions begun
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/berthmaster/berthmaster/clients/conformance/realpool"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "realpool:", err)
		os.Exit(1)
	}
}

// run serves until in ends.
func run(in io.Reader, out io.Writer) error {
	house, err := realpool.Open(nil, nil, nil)
	if err != nil {
		return err
	}
	defer house.Close()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: desk{house}.routes(), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("read the standard input: %w", err)
	}
	_ = server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
