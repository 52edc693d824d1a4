package main

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/traffic"
)

// The bundled workload is a steady stream of sessions, as asynchronous rollouts
// are. It is this large because two cores are not its bottleneck, and at the
// default speed it takes between one and two minutes.
const (
	bundledSessions = 400
	bundledEvery    = 4 * time.Second
	bundledSeed     = 1
)

// options are what a person may choose.
type options struct {
	root, bin, assets, work string
	trace                   string
	limit                   int
	plant                   string
	speed                   float64
	engines                 int
	first                   string
	only                    string
}

// The values of the flag -only.
const (
	onlySystem = "system" // bring the system up and leave it until Ctrl-C
)

func parse(args []string, complaints io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(complaints)
	f.StringVar(&o.root, "root", ".", "folder of the project")
	f.StringVar(&o.bin, "bin", "bin", "folder with manager and sglang-sim")
	f.StringVar(&o.assets, "assets", "bin/k8s", "folder with etcd, kube-apiserver and kubectl")
	f.StringVar(&o.work, "work", ".cache/demo", "folder for logs; what is in it is removed")
	f.StringVar(&o.trace, "trace", "", "a recorded workload to replay, CSV or Mooncake JSONL; empty: the bundled one")
	f.IntVar(&o.limit, "limit", 0, "replay at most so many requests; 0: all")
	f.StringVar(&o.plant, "plant", "", "a fault to put into the clients: replay")
	f.Float64Var(&o.speed, "speed", 25, "how much faster than real time workload and engines run")
	f.IntVar(&o.engines, "engines", 8, "how many simulated engines to run")
	f.StringVar(&o.first, "first-address", "127.0.0.11", "loopback address of the first engine")
	f.StringVar(&o.only, "only", "", "do only a part: system (bring it up and leave it until Ctrl-C)")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	if f.NArg() > 0 {
		return options{}, fmt.Errorf("%q is no flag, and there are no other arguments", f.Arg(0))
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.limit < 0:
		return fmt.Errorf("-limit is %d; it may not be negative", o.limit)
	case o.engines < 3:
		return fmt.Errorf("-engines is %d; the story drains one, kills one and needs another", o.engines)
	case o.plant != string(traffic.PlantNone) && o.plant != string(traffic.PlantReplay):
		return fmt.Errorf("-plant is %q; the only fault to plant is %q", o.plant, traffic.PlantReplay)
	case o.only != "" && o.only != onlySystem:
		return fmt.Errorf("-only is %q; it may be %q", o.only, onlySystem)
	}
	return nil
}

// local returns how to start the system.
func (o options) local(say func(string)) (local.Config, error) {
	first, err := netip.ParseAddr(o.first)
	if err != nil {
		return local.Config{}, fmt.Errorf("-first-address: %w", err)
	}
	c := local.Config{Engines: o.engines, FirstAddress: first, Speed: o.speed, Say: say}
	if o.only == onlySystem {
		c.LeaseAddress = "127.0.0.1:8085" // where the documentation looks for it
	}
	for _, folder := range []struct {
		to   *string
		from string
	}{{&c.Root, o.root}, {&c.Bin, o.bin}, {&c.Assets, o.assets}, {&c.Work, o.work}} {
		if *folder.to, err = filepath.Abs(folder.from); err != nil {
			return local.Config{}, fmt.Errorf("folder %s: %w", folder.from, err)
		}
	}
	return c, nil
}

// sessions reads the trace, or generates the bundled workload.
func (o options) sessions() ([]workload.Session, error) {
	if o.trace != "" {
		return workload.ReadFile(o.trace, o.limit)
	}
	sessions, err := workload.Limits{Sessions: bundledSessions, Every: bundledEvery}.Generate(bundledSeed)
	if err != nil {
		return nil, err
	}
	return first(sessions, o.limit), nil
}

// first cuts a workload after so many requests, session by session; 0 cuts
// nothing.
func first(sessions []workload.Session, requests int) []workload.Session {
	if requests == 0 {
		return sessions
	}
	var out []workload.Session
	for _, session := range sessions {
		if requests == 0 {
			break
		}
		session.Turns = session.Turns[:min(requests, len(session.Turns))]
		requests -= len(session.Turns)
		out = append(out, session)
	}
	return out
}
