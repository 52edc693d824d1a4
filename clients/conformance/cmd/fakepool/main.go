// Command fakepool offers the conformance scenarios to clients in any language, over HTTP on
// loopback, with a scripted router and scripted engines. Its first line of output is its URL; it ends with
// its standard input. Package desk says what can be called there; words to wait for are those of a run's
// trace, which package fakepool explains.
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

	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/desk"
	"github.com/berthmaster/berthmaster/clients/conformance/fakepool"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakepool:", err)
		os.Exit(1)
	}
}

// run serves until in ends.
func run(in io.Reader, out io.Writer) error {
	table, err := conformance.Load()
	if err != nil {
		return err
	}
	runs := desk.New(table, func(_ context.Context, s conformance.Scenario) (desk.Run, error) { return fakepool.Start(s) })
	defer runs.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: runs.Handler(), ReadHeaderTimeout: time.Minute}
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
