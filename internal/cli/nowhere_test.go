package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWithoutAKubeconfigTheUserIsToldToNameOne(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, command := range []string{"top", "doctor"} {
		_, err := call(command)
		if err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
			t.Errorf("%s: %v", command, err)
		}
	}
	if _, err := call("top", "--server", "http://localhost:1"); err == nil || strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("with a server that was named: %v", err)
	}
}
