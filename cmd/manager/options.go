package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/berthmaster/berthmaster/internal/router/server"
)

// options are the manager's flags. Their defaults serve a trial on one machine: everything is bound
// to loopback, and nobody is asked who they are.
type options struct {
	leaseAddress   string
	metricsAddress string
	probeAddress   string
	namespace      string
	tokenKeyFile   string
	tokenKeySecret string
	election       electionOptions
	security       securityOptions
	ports          portOptions
	engines        reachOptions
	logging        loggingOptions
	tracing        tracingOptions
}

// bind declares the flags.
func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.leaseAddress, "lease-bind-address", "127.0.0.1:8085",
		"host:port of the lease API and the proxy; beyond loopback it needs --authentication=TokenReview")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:8080",
		"host:port of the metrics; 0: none; beyond loopback it needs --authentication=TokenReview")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port of /healthz and /readyz; 0: none")
	flags.StringVar(&o.namespace, "namespace", "",
		"the one namespace whose pools and pods are looked at; empty: all")
	flags.StringVar(&o.tokenKeyFile, "token-key-file", "",
		"a file of at least 32 bytes that lease tokens are signed with, so that they survive a restart; empty: a random key for the life of the process")
	flags.StringVar(&o.tokenKeySecret, "token-key-secret", "",
		"name of the Secret, in the manager's namespace, with the keys of lease tokens; made on first start; replicas share it")
	o.election.bind(flags)
	o.security.bind(flags)
	o.ports.bind(flags)
	o.engines.bind(flags)
	o.logging.bind(flags)
	o.tracing.bind(flags)
}

// validate names the flag that cannot be used.
func (o *options) validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("unexpected argument %q: the manager takes flags only", arguments[0])
	case o.leaseAddress == "":
		return errors.New("--lease-bind-address is empty")
	case o.tokenKeyFile != "" && o.tokenKeySecret != "":
		return errors.New("--token-key-file and --token-key-secret exclude each other")
	case o.election.elect && o.tokenKeyFile == "" && o.tokenKeySecret == "":
		return errors.New("--leader-elect needs --token-key-secret or --token-key-file: replicas must know each other's tokens")
	}
	_, err := o.engines.parse()
	return cmp.Or(err, o.election.validate(o.leaseAddress), o.security.validate(), o.validatePorts(), o.logging.validate(), o.tracing.validate())
}

// tokenKeys are the keys that lease tokens are made and verified with.
func (o *options) tokenKeys() (server.Keys, error) {
	if o.tokenKeyFile == "" {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails: crypto/rand documents that it aborts instead
		return server.Keys{Current: key}, nil
	}
	key, err := os.ReadFile(o.tokenKeyFile)
	if err != nil {
		return server.Keys{}, fmt.Errorf("--token-key-file: %w", err)
	}
	keys := server.Keys{Current: key}
	if err := keys.Validate(); err != nil {
		return server.Keys{}, fmt.Errorf("--token-key-file: %w", err)
	}
	return keys, nil
}
