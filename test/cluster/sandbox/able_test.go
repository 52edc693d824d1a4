package main

import (
	"errors"
	"strings"
	"testing"
)

func TestAMachineIsToldAllThatItLacks(t *testing.T) {
	able := func() machine {
		return machine{
			find:    func(string) error { return nil },
			groups:  func() ([]hierarchy, error) { return []hierarchy{{folder: "memory"}}, nil },
			isolate: func(uintptr) error { return nil },
		}
	}
	for name, c := range map[string]struct {
		spoil func(*machine)
		want  []string // none: it lacks nothing
	}{
		"all is there":             {func(*machine) {}, nil},
		"the user is not root":     {func(m *machine) { m.user = 1000 }, []string{"root"}},
		"a program is missing":     {func(m *machine) { m.find = only("ip", "nsenter") }, []string{"nft", "nftables"}},
		"two programs are missing": {func(m *machine) { m.find = only("ip") }, []string{"nftables", "util-linux"}},
		"groups are of version 2":  {func(m *machine) { m.groups = func() ([]hierarchy, error) { return nil, errNoGroups } }, []string{"version 1"}},
		"namespaces are forbidden": {func(m *machine) { m.isolate = func(uintptr) error { return errors.New("operation not permitted") } }, []string{"namespaces", "not permitted"}},
		"nearly everything": {func(m *machine) {
			m.user, m.find = 1000, only()
		}, []string{"root", "iproute2", "nftables", "util-linux"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := able()
			c.spoil(&m)
			err := m.lacks()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("it lacks: %v", err)
			}
			for _, word := range c.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		})
	}
}

// only finds these programs.
func only(names ...string) func(string) error {
	return func(program string) error {
		for _, name := range names {
			if name == program {
				return nil
			}
		}
		return errors.New("not found")
	}
}
