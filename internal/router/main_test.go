package router

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the runs of the property tests long enough that take-overs, drains and
// epochs meet in one of them, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { chosen[f.Name] = true })
	for name, value := range map[string]string{"rapid.steps": "120", "rapid.checks": "150", "rapid.nofailfile": "true"} {
		if chosen[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	if flag.Lookup("test.bench").Value.String() != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}
