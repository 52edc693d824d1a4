// Command fakepool offers the conformance scenarios to clients in any language, over HTTP on
// loopback. Its first line of output is its URL; it ends with its standard input.
//
//	GET  /scenarios               the table
//	POST /runs {"scenario": NAME} begins a run: {"run", "baseURL", "routerToken", "engineKey"}
//	GET  /runs/RUN/await?word=W   answers once the trace of the run shows W
//	POST /runs/RUN/verdict        takes {"reports": [...]}, one for each step; ends the run and
//	                              answers {"violations": [...], "trace": [...]}
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
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakepool:", err)
		os.Exit(1)
	}
}

// run serves until in ends.
func run(in io.Reader, out io.Writer) error {
	desk, err := newDesk()
	if err != nil {
		return err
	}
	defer desk.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: desk.routes(), ReadHeaderTimeout: time.Minute}
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
