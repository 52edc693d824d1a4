package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// errEmptyCredential: a file that should hold a credential holds none.
var errEmptyCredential = errors.New("the file is empty")

// FromFile reads a credential from a file on each call, without the white space around it: tokens
// of service accounts are replaced while a process runs. It is for Config.Token and Config.APIKey.
func FromFile(path string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read a credential: %w", err)
		}
		credential := strings.TrimSpace(string(raw))
		if credential == "" {
			return "", fmt.Errorf("read a credential from %s: %w", path, errEmptyCredential)
		}
		return credential, nil
	}
}
