package sglang

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// PauseMode is what becomes of running requests while an engine is paused. New requests wait in
// the engine's front in every mode; they are not refused.
type PauseMode string

const (
	// PauseAbort aborts what runs, and answers once nothing is in flight any more.
	PauseAbort PauseMode = "abort"
	// PauseRetract puts what runs back into the queue and frees its cache.
	PauseRetract PauseMode = "retract"
	// PauseInPlace stops the scheduler where it is.
	PauseInPlace PauseMode = "in_place"
)

// Pause stops generation. It is idempotent. It does not answer before the pause is complete, which
// in PauseAbort takes a second or more.
func (c *Client) Pause(ctx context.Context, mode PauseMode) error {
	body := struct {
		Mode PauseMode `json:"mode"`
	}{mode}
	return c.command(ctx, "/pause_generation", body)
}

// Continue lets a paused engine generate again. It is idempotent.
func (c *Client) Continue(ctx context.Context) error {
	return c.command(ctx, "/continue_generation", struct{}{})
}

// FlushCache empties the prefix cache of an idle engine. timeout, if positive, lets the engine wait
// that long to become idle; it is rounded up to seconds. An engine that is not idle answers 400.
//
// Only an engine that is known to be idle may be asked: on some releases a flush that finds work
// kills the scheduler.
func (c *Client) FlushCache(ctx context.Context, timeout time.Duration) error {
	flush := call{method: http.MethodPost, route: "/flush_cache", access: admin, limit: smallReply}
	if timeout > 0 {
		whole := int64((timeout + time.Second - 1) / time.Second)
		flush.query = url.Values{"timeout": {strconv.FormatInt(whole, 10)}}.Encode()
	}
	_, err := c.do(ctx, flush)
	return err
}

// SetWeightVersion writes the name of the weights into the engine and aborts nothing: the engine's
// own default would abort every request. The weights are not touched, so that the name is only as
// true as its writer.
func (c *Client) SetWeightVersion(ctx context.Context, version string) error {
	body := struct {
		Version string `json:"new_version"`
		Abort   bool   `json:"abort_all_requests"`
	}{version, false}
	return c.command(ctx, "/update_weight_version", body)
}

// Flush says whether an update of the weights empties the prefix cache.
type Flush int

const (
	// KeepCache leaves entries of the old weights in the cache. It is the only safe choice for an
	// engine on which something may run.
	KeepCache Flush = iota
	// FlushIdle empties the cache of an engine that is known to be idle.
	FlushIdle
)

// DiskUpdate is an update of the weights from a path that the engine can read.
type DiskUpdate struct {
	// Path is where the weights are.
	Path string
	// Version names them; the engine reports it from then on.
	Version string
	// Flush says what becomes of the cache.
	Flush Flush
}

// UpdateFromDisk loads weights. An engine that is not paused lets what runs end first, and holds
// back what is new meanwhile. It fails with ErrDeclined, and the engine's words, where the engine
// answers that it did not do it, whatever the status.
func (c *Client) UpdateFromDisk(ctx context.Context, update DiskUpdate) error {
	body := struct {
		Path    string `json:"model_path"`
		Version string `json:"weight_version"`
		Flush   bool   `json:"flush_cache"`
		Abort   bool   `json:"abort_all_requests"`
	}{update.Path, update.Version, update.Flush == FlushIdle, false}
	return c.command(ctx, "/update_weights_from_disk", body)
}

// command posts to a route of the engine's administration and looks for success in its reply. An
// intent that was declined must never pass for an outcome.
func (c *Client) command(ctx context.Context, route string, body any) error {
	reply, err := c.do(ctx, call{method: http.MethodPost, route: route, body: body, access: admin, limit: infoReply})
	if err != nil {
		return declinedIn(route, err)
	}
	replies, err := commandReplies(route, reply)
	if err != nil {
		return err
	}
	for _, r := range replies {
		if !r.succeeded() {
			return fmt.Errorf("%s: %w: %s", route, ErrDeclined, oneLine(r.Message))
		}
	}
	return nil
}

// commandReply is one rank's answer to a command: {success} of an update, {status} of a pause.
type commandReply struct {
	Success *bool  `json:"success"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (r commandReply) succeeded() bool {
	if r.Success != nil {
		return *r.Success
	}
	return r.Status == "ok"
}

// commandReplies reads a reply that is one object, or one per data-parallel rank.
func commandReplies(route string, body []byte) ([]commandReply, error) {
	var replies []commandReply
	if json.Unmarshal(body, &replies) == nil && len(replies) > 0 {
		return replies, nil
	}
	var one commandReply
	if err := decode(route, body, &one); err != nil {
		return nil, err
	}
	return []commandReply{one}, nil
}

// declinedIn marks a 400 of a command as declined. Its words are the status error's.
func declinedIn(route string, err error) error {
	if Code(err) != http.StatusBadRequest {
		return err
	}
	return fmt.Errorf("%s: %w: %w", route, ErrDeclined, err)
}
