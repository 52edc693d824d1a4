package main

import (
	"os"
	"slices"
	"testing"
)

func TestLoadedByReadsWhatTheLoaderSays(t *testing.T) {
	got := loadedBy(`/usr/bin/python3.11:
	linux-vdso.so.1 (0x00007ffd0d5f2000)
	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1a2c4f0000)
	libabsent.so.1 => not found
	/lib64/ld-linux-x86-64.so.2 (0x00007f1a2ca00000)
/usr/lib/python3.11/lib-dynload/_ssl.so:
	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1a2c4f0000)
	libssl.so.3 => /usr/lib/libssl.so.3 (0x00007f1a2c4f0000)
`)
	want := []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/libssl.so.3"}
	if !slices.Equal(got, want) {
		t.Errorf("loaded: %q, want %q", got, want)
	}
}

func TestWhatNoClientNeedsIsLeftOut(t *testing.T) {
	for relative, want := range map[string]bool{
		"asyncio/events.py": false, "test/test_ssl.py": true, "lib-dynload/_ssl.so": false,
		"asyncio/__pycache__": true, "site-packages/pip": true, "config-3.11-x86_64-linux-gnu/Makefile": true,
		"httpx/_api.py": false, "unittest/mock.py": false,
	} {
		if got := leftOut(relative); got != want {
			t.Errorf("leftOut(%q) is %t", relative, got)
		}
	}
}

func TestAProgramThatNeedsALoaderIsRefused(t *testing.T) {
	// The test's own binary is linked as the machine does it; a text is no program at all.
	text := t.TempDir() + "/text"
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkStatic(text); err == nil {
		t.Error("a text passes for a static program")
	}
	if err := checkStatic("/bin/sh"); err == nil {
		t.Error("/bin/sh passes for a static program")
	}
}
