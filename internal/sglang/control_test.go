package sglang

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ok = `{"message":"Generation paused successfully.","status":"ok"}`

func TestACommandIsSentAsTheEngineReadsIt(t *testing.T) {
	keys := func() Keys { return Keys{API: "api", Admin: "adm"} }
	cases := map[string]struct {
		command func(context.Context, *Client) error
		uri     string
		body    string
		reply   string
	}{
		"pause": {
			func(ctx context.Context, c *Client) error { return c.Pause(ctx, PauseRetract) },
			"/pause_generation", `{"mode":"retract"}`, ok,
		},
		"continue": {
			func(ctx context.Context, c *Client) error { return c.Continue(ctx) },
			"/continue_generation", `{}`, ok,
		},
		"flush": {
			func(ctx context.Context, c *Client) error { return c.FlushCache(ctx, 0) },
			"/flush_cache", "", "Cache flushed.",
		},
		"flush with a wait, in whole seconds": {
			func(ctx context.Context, c *Client) error { return c.FlushCache(ctx, 1500*time.Millisecond) },
			"/flush_cache?timeout=2", "", "Cache flushed.",
		},
		"version, aborting nothing": {
			func(ctx context.Context, c *Client) error { return c.SetWeightVersion(ctx, "v8") },
			"/update_weight_version", `{"new_version":"v8","abort_all_requests":false}`,
			`{"success":true,"message":"Weight version updated to v8","new_version":"v8"}`,
		},
		"update, keeping the cache": {
			func(ctx context.Context, c *Client) error {
				return c.UpdateFromDisk(ctx, DiskUpdate{Path: "/w", Version: "v8"})
			},
			"/update_weights_from_disk",
			`{"model_path":"/w","weight_version":"v8","flush_cache":false,"abort_all_requests":false}`,
			`{"success":true,"message":"Succeeded to update model weights.","num_paused_requests":0}`,
		},
		"update of an idle engine, on every rank": {
			func(ctx context.Context, c *Client) error {
				return c.UpdateFromDisk(ctx, DiskUpdate{Path: "/w", Version: "v8", Flush: FlushIdle})
			},
			"/update_weights_from_disk",
			`{"model_path":"/w","weight_version":"v8","flush_cache":true,"abort_all_requests":false}`,
			`[{"success":true,"message":""},{"success":true,"message":""}]`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path, _, _ := strings.Cut(c.uri, "?")
			fake := &engine{replies: map[string]reply{path: {200, c.reply}}}
			if err := c.command(context60(t), start(t, fake, keys)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]seen{{"POST", c.uri, "Bearer adm", c.body}}, fake.asked()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUpdateThatWasDeclinedIsNoSuccess(t *testing.T) {
	cases := map[string]struct {
		reply    reply
		declined bool
		words    string
	}{
		"success false with 200":    {reply{200, `{"success":false,"message":"no such path"}`}, true, "no such path"},
		"success false with 400":    {reply{400, `{"success":false,"message":"no such path"}`}, true, "no such path"},
		"one of two ranks":          {reply{200, `[{"success":true},{"success":false,"message":"rank 1"}]`}, true, "rank 1"},
		"a reply without a verdict": {reply{200, `{"message":"hm"}`}, true, "hm"},
		"a pause without an ok":     {reply{200, `{"status":"busy","message":"hm"}`}, true, "hm"},
		"an empty list":             {reply{200, `[]`}, false, "malformed"},
		"no JSON":                   {reply{200, `done`}, false, "malformed"},
		"a server error":            {reply{500, `{"error":{"message":"boom"}}`}, false, "boom"},
		"a missing key":             {reply{401, `{"error":"Unauthorized"}`}, false, "Unauthorized"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fake := &engine{replies: map[string]reply{"/update_weights_from_disk": c.reply}}
			err := start(t, fake, nil).UpdateFromDisk(context60(t), DiskUpdate{Path: "/w", Version: "v"})
			if err == nil || errors.Is(err, ErrDeclined) != c.declined || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFlushThatFindsWorkIsRefused(t *testing.T) {
	fake := &engine{replies: map[string]reply{"/flush_cache": {400, "Flush cache failed.\n"}}}
	err := start(t, fake, nil).FlushCache(context60(t), 0)
	if Code(err) != 400 || !strings.Contains(err.Error(), "Flush cache failed.") {
		t.Errorf("got %v", err)
	}
}
