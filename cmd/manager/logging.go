package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// loggingOptions are the flags about the log.
type loggingOptions struct {
	format string
	level  slog.Level
}

func (o *loggingOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.format, "log-format", "json", "json, for machines, or text, for people")
	flags.TextVar(&o.level, "log-level", slog.LevelInfo,
		"debug, which has a line for every call about a lease, info, warn or error")
}

func (o *loggingOptions) validate() error {
	if o.format != "json" && o.format != "text" {
		return fmt.Errorf("--log-format %q: must be json or text", o.format)
	}
	return nil
}

// logger writes lines to a file in the form and from the level that was asked for.
func (o *loggingOptions) logger(to io.Writer) *slog.Logger {
	how := &slog.HandlerOptions{Level: o.level}
	if o.format == "text" {
		return slog.New(slog.NewTextHandler(to, how))
	}
	return slog.New(slog.NewJSONHandler(to, how))
}

// use makes it the log of everything in this process, the Kubernetes libraries included.
func use(l *slog.Logger) {
	ctrl.SetLogger(logr.FromSlogHandler(l.Handler()))
	klog.SetLogger(logr.FromSlogHandler(l.Handler()))
}
