package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var errUsage = errors.New("usage: sandbox [-bin DIR] [-state DIR] check|up|await|down|exec|load|stop|start|cut|mend [ARGUMENT ...]")

// run is the program from its arguments to its status.
func run(arguments []string) (int, error) {
	if len(arguments) > 0 {
		if code, known, err := runRole(arguments[0], arguments[1:]); known {
			return code, err
		}
	}
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	bin := flags.String("bin", orElse("SANDBOX_BIN", "bin/cluster"), "folder with the binaries, and in it images/")
	state := flags.String("state", orElse("SANDBOX_STATE", ".cache/cluster"), "folder for what a run writes; emptied by up")
	if err := flags.Parse(arguments); err != nil {
		return 2, err
	}
	l, err := layoutOf(*bin, *state)
	if err != nil {
		return 1, err
	}
	rest := flags.Args()
	if len(rest) == 0 {
		return 2, errUsage
	}
	return act(l, rest[0], rest[1:])
}

// runRole is what the program does when it runs itself inside of namespaces that it has made.
func runRole(role string, arguments []string) (code int, known bool, err error) {
	if role == "first" {
		code, err := beFirst(arguments)
		return code, true, err
	}
	if role != "inside" && role != "machine" && role != "boot" {
		return 0, false, nil
	}
	l := layout{bin: arguments[0], state: arguments[1]}
	if role == "inside" {
		code, err := inside(l, arguments[2:])
		return code, true, err
	}
	n, err := nodeNamed(arguments[2])
	if err != nil {
		return 1, true, err
	}
	if role == "boot" {
		return 1, true, boot(l, n)
	}
	code, err = runMachine(l, n)
	return code, true, err
}

// act does what a person, or a test, asks for.
func act(l layout, verb string, arguments []string) (int, error) {
	switch verb {
	case "check":
		return 0, thisMachine().lacks()
	case "up":
		if err := thisMachine().lacks(); err != nil {
			return 1, err
		}
		return up(l, afterDashes(arguments))
	case "await":
		return 0, awaitUp(l)
	case "down":
		return 0, down(l)
	case "exec":
		return 1, join(l, afterDashes(arguments))
	}
	if !insideSandbox() {
		// The rest changes the cluster from the inside.
		me, err := os.Executable()
		if err != nil {
			return 1, err
		}
		return 1, join(l, append([]string{me, verb}, arguments...))
	}
	return 0, change(l, verb, arguments)
}

func change(l layout, verb string, arguments []string) error {
	if verb == "load" {
		return load(l, arguments)
	}
	if len(arguments) != 1 {
		return errUsage
	}
	switch verb {
	case "stop":
		return l.stop(arguments[0])
	case "start":
		return l.restart(arguments[0])
	}
	n, err := nodeNamed(arguments[0])
	if err != nil {
		return err
	}
	switch verb {
	case "cut":
		return cut(n)
	case "mend":
		return mend(n)
	}
	return errUsage
}

// insideSandbox says whether this process sees the sandbox's switch, which nobody else does.
func insideSandbox() bool {
	_, err := os.Stat("/proc/sys/net/ipv4/conf/switch")
	return err == nil
}

func afterDashes(arguments []string) []string {
	if len(arguments) > 0 && arguments[0] == "--" {
		return arguments[1:]
	}
	return arguments
}

func layoutOf(bin, state string) (layout, error) {
	b, err := filepath.Abs(bin)
	if err != nil {
		return layout{}, err
	}
	s, err := filepath.Abs(state)
	return layout{bin: b, state: s}, err
}

func orElse(variable, value string) string {
	if set := os.Getenv(variable); set != "" {
		return set
	}
	return value
}
