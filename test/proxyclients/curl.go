package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// image is one pixel.
const image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// curl goes through the scenarios with curl.
func curl(ctx context.Context, _ string, h *house) error {
	if _, err := exec.LookPath("curl"); err != nil {
		return fmt.Errorf("%w: %w", errSkip, err)
	}
	const chat = `{"model":"policy","max_tokens":8,"ignore_eos":true,"messages":[{"role":"user","content":%s}]%s}`
	say := func(content, more string) []string { return []string{"-d", fmt.Sprintf(chat, content, more)} }
	steady, broken := h.url(steadyPool), h.url(brokenPool)
	for _, s := range []struct {
		name, url string
		args      []string
		// exit is curl's status: 0, 22 for an HTTP error, 28 for its own time limit.
		exit int
		want string
	}{
		{"models", steady + "/models", nil, 0, `"id":"policy"`},
		{"plain", steady + "/chat/completions", say(`"plain"`, ""), 0, `"finish_reason":"length"`},
		{"streaming", steady + "/chat/completions", say(`"streaming"`, `,"stream":true`), 0, "data: [DONE]"},
		{"tools", steady + "/chat/completions", say(`"tools"`, `,"tools":[{"type":"function","function":{"name":"look","parameters":{}}}]`), 0, `"finish_reason":"length"`},
		{"image", steady + "/chat/completions", say(`[{"type":"image_url","image_url":{"url":"`+image+`"}}]`, ""), 0, `"finish_reason":"length"`},
		{"samples", steady + "/chat/completions", say(`"samples"`, `,"n":2`), 0, `"index":1`},
		{"cancelled", steady + "/chat/completions", append(say(`"cancelled"`, `,"stream":true,"max_completion_tokens":30000`), "--max-time", "2"), 28, "data: {"},
		{"rejected", steady + "/chat/completions", []string{"-d", `{"model":"policy","messages":"none"}`}, 22, "messages"},
		{"hold", h.base + "/hold", []string{"-X", "POST"}, 0, ""},
		{"held", steady + "/chat/completions", say(`"held"`, ""), 0, `"finish_reason":"length"`},
		{"broken", broken + "/chat/completions", say(`"broken"`, ""), 22, `"reason":"ExchangeBroken"`},
		{"finished", strings.TrimSuffix(steady, "/v1") + "/finish_session?session_id=curl", []string{"-X", "POST"}, 0, "true"},
	} {
		if err := curlOnce(ctx, s.url, s.args, s.exit, s.want); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("  ok %s\n", s.name)
	}
	return nil
}

func curlOnce(ctx context.Context, url string, args []string, exit int, want string) error {
	all := append([]string{"--silent", "--show-error", "--fail-with-body", "--no-buffer", "-H", "Content-Type: application/json", "-H", "X-Session-ID: curl", url}, args...)
	out, err := exec.CommandContext(ctx, "curl", all...).CombinedOutput()
	status := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		status = failed.ExitCode()
	} else if err != nil {
		return err
	}
	if status != exit || !strings.Contains(string(out), want) {
		return fmt.Errorf("curl ended with %d, want %d with %q: %.400s", status, exit, want, out)
	}
	return nil
}
