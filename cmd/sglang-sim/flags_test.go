package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func flagsOf(g group) []*pflag.Flag {
	var out []*pflag.Flag
	g.set.VisitAll(func(f *pflag.Flag) { out = append(out, f) })
	return out
}

func equalConfigs(t *testing.T, a, b enginesim.Config) bool {
	t.Helper()
	return cmp.Equal(a, b, cmpopts.IgnoreFields(enginesim.Config{}, "NewID", "Clock", "Log"))
}
