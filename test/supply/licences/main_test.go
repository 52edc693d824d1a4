package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLicencesAreKnownByTheirWordsAndOthersRefused(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                          "Apache-2.0",
		"Permission is hereby granted, free of charge, to any person":                                           "MIT",
		"Redistributions in binary form must reproduce ... Neither the name of the Company":                     "BSD-3-Clause",
		"Redistributions in binary form must reproduce the above":                                               "BSD-2-Clause",
		"Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee": "ISC",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3":                                                           "",
	} {
		folder := t.TempDir()
		if _, err := licenceIn(folder); !errors.Is(err, errNone) {
			t.Errorf("an empty folder: %v", err)
		}
		if err := os.WriteFile(filepath.Join(folder, "LICENSE.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := licenceIn(folder); got != want || (want == "") != errors.Is(err, errUnknown) {
			t.Errorf("%.30s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestThePageNamesEveryModule(t *testing.T) {
	if text := page([]module{{"a.example/b", "v1.2.3", "", "MIT"}}); !strings.Contains(text, "| a.example/b | v1.2.3 | MIT |") {
		t.Error(text)
	}
}
