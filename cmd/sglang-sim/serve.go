package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

// exitInterrupted is the exit status after SIGINT.
const exitInterrupted = 130

// serve runs an engine until it ends or ctx does, and returns the status to exit with.
func serve(ctx context.Context, o *options, stdout io.Writer, signals <-chan os.Signal) (code int, err error) {
	cfg, err := o.config()
	if err != nil {
		return 0, err
	}
	log, err := o.openLog(cfg.Name)
	if err != nil {
		return 0, err
	}
	if log != nil {
		cfg.Log = log
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	engine, err := enginesim.New(cfg)
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	socket, err := engine.Listen(o.addr())
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(stdout, "sglang-sim %s listens on %s\n", cfg.Name, socket.URL()); err != nil {
		return 0, fmt.Errorf("say where it listens: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- socket.Serve() }()
	return await(ctx, engine, signals, failed)
}

// await waits for the end of the engine, handing it its signals.
func await(ctx context.Context, engine *enginesim.Server, signals <-chan os.Signal, failed <-chan error) (int, error) {
	for {
		select {
		case sig := <-signals:
			if sig != syscall.SIGTERM {
				return exitInterrupted, nil
			}
			engine.Terminate()
		case <-engine.Done():
			return engine.ExitCode(), nil
		case err := <-failed:
			if err != nil {
				return 0, err
			}
			return engine.ExitCode(), nil
		case <-ctx.Done():
			return 0, nil
		}
	}
}
