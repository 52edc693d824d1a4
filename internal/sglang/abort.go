package sglang

import (
	"context"
	"errors"
	"net/http"
)

// ErrNoRID is returned by AbortRequest for an empty rid.
var ErrNoRID = errors.New("abort needs a rid")

type abortBody struct {
	RID string `json:"rid"`
}

// AbortRequest asks the engine to abort every request whose rid starts with rid. The engine
// answers before it has done so, whether or not it knows such a request: an answer is no proof
// that anything ended. A running request is not aborted while the engine is paused by retracting
// or in place. An empty rid would mean every request on some releases and none on others, so it
// is refused with ErrNoRID.
func (c *Client) AbortRequest(ctx context.Context, rid string) error {
	if rid == "" {
		return ErrNoRID
	}
	_, err := c.do(ctx, call{
		method: http.MethodPost, route: "/abort_request", body: abortBody{RID: rid}, access: admin, limit: smallReply,
	})
	return err
}
