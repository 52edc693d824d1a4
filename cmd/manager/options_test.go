package main

import (
	"bytes"
	"flag"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// parse is what the manager makes of its arguments.
func parse(t *testing.T, arguments ...string) (*options, error) {
	t.Helper()
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(&bytes.Buffer{})
	o.bind(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	return &o, o.validate(flags.Args())
}

func TestEverythingIsBoundToLoopbackUnlessToldOtherwise(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	for flag, address := range map[string]string{
		"lease-bind-address": o.leaseAddress, "metrics-bind-address": o.metricsAddress, "health-probe-bind-address": o.probeAddress,
	} {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("--%s is %s by default, want a loopback address", flag, address)
		}
	}
}

func TestArgumentsThatMakeNoSenseAreRefusedByName(t *testing.T) {
	for argument, want := range map[string]string{
		"serve": `"serve"`, "--lease-bind-address=": "--lease-bind-address", "--no-such-flag": "no-such-flag",
	} {
		if _, err := parse(t, argument); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", argument, err, want)
		}
	}
}

func TestReplicasAreToldWhereToFindEachOther(t *testing.T) {
	replicas := []string{"--leader-elect", "--token-key-secret=keys", "--authentication=TokenReview"}
	for name, c := range map[string]struct {
		more []string
		fine bool
	}{
		"bound to one address":               {[]string{"--lease-bind-address=10.0.0.7:8085"}, true},
		"bound to all, and one is said":      {[]string{"--lease-bind-address=:8085", "--lease-advertise-address=10.0.0.7:8085"}, true},
		"a pod's IPv6 address and a port":    {[]string{"--lease-bind-address=:8085", "--lease-advertise-address=fd00::7:8085"}, true},
		"bound to all, and none is said":     {[]string{"--lease-bind-address=0.0.0.0:8085"}, false},
		"bound to all of IPv6, none is said": {[]string{"--lease-bind-address=[::]:8085"}, false},
		"bound to every host, none is said":  {[]string{"--lease-bind-address=:8085"}, false},
		"what is said is no host and port":   {[]string{"--lease-advertise-address=10.0.0.7"}, false},
	} {
		_, err := parse(t, append(slices.Clone(replicas), c.more...)...)
		if c.fine && err != nil || !c.fine && (err == nil || !strings.Contains(err.Error(), "--lease-advertise-address")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for given, want := range map[string]string{
		"10.0.0.7:8085": "10.0.0.7:8085", "fd00::7:8085": "[fd00::7]:8085", "[fd00::7]:8085": "[fd00::7]:8085", "manager.rl:8085": "manager.rl:8085",
	} {
		o, err := parse(t, append(slices.Clone(replicas), "--lease-advertise-address="+given)...)
		if err != nil || o.election.advertise != want {
			t.Errorf("%s: found at %q (%v), want %q", given, o.election.advertise, err, want)
		}
	}
	if _, err := parse(t, "--authentication=TokenReview", "--lease-bind-address=:8085"); err != nil {
		t.Errorf("the only replica has nobody to be found by: %v", err)
	}
}

func TestTokenKeyComesFromTheFileOrFromChance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	key := bytes.Repeat([]byte("k"), 32)
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := (&options{tokenKeyFile: path}).tokenKeys()
	if err != nil || !bytes.Equal(keys.Current, key) {
		t.Errorf("key %q, %v; want that of the file", keys.Current, err)
	}
	one, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	other, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(one.Current, other.Current) || one.Validate() != nil {
		t.Error("two processes without a file share a key, or have a short one")
	}
}

func TestTokenKeyFileThatIsMissingOrShortIsRefused(t *testing.T) {
	short := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{short, filepath.Join(t.TempDir(), "missing")} {
		if _, err := (&options{tokenKeyFile: path}).tokenKeys(); err == nil || !strings.Contains(err.Error(), "--token-key-file") {
			t.Errorf("%s: %v, want an error that names the flag", path, err)
		}
	}
}

func TestPodsAreTrimmedAndANamespaceLimitsTheCaches(t *testing.T) {
	caches := cachesFor(&options{namespace: "rl"})
	if _, limited := caches.DefaultNamespaces["rl"]; !limited || len(caches.DefaultNamespaces) != 1 {
		t.Errorf("namespaces %v, want rl alone", caches.DefaultNamespaces)
	}
	if everywhere := cachesFor(&options{}); everywhere.DefaultNamespaces != nil {
		t.Errorf("namespaces %v, want all", everywhere.DefaultNamespaces)
	}
	for object, by := range caches.ByObject {
		if by.Transform == nil {
			t.Errorf("%T is kept whole, want it trimmed", object)
		}
	}
	if len(caches.ByObject) != 2 {
		t.Errorf("%d kinds have caches of their own, want pods and nodes", len(caches.ByObject))
	}
}

func TestTheLogIsJSONForMachinesUnlessToldOtherwise(t *testing.T) {
	for argument, want := range map[string]string{"--log-level=info": `"msg":"hello"`, "--log-format=text": "msg=hello"} {
		o, err := parse(t, argument)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		o.logging.logger(&out).Info("hello", "pool", "rl/policy")
		o.logging.logger(&out).Debug("silent")
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "silent") {
			t.Errorf("%s: %s", argument, out.String())
		}
	}
	for argument, name := range map[string]string{"--log-format=xml": "--log-format", "--trace-percent=101": "--trace-percent", "--log-level=loud": "log-level"} {
		if _, err := parse(t, argument); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names %s", argument, err, name)
		}
	}
}

func TestNothingIsTracedUnlessAReceiverIsNamed(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	observing, err := newObservers(&o.tracing, o.logging.logger(&log))
	if err != nil || observing.traces != nil || observing.Context(router.PoolKey{Namespace: "rl", Name: "policy"}, "r1", "") != "" {
		t.Errorf("%+v, %v", observing, err)
	}
	if err := observing.close(); err != nil {
		t.Error(err)
	}
}
