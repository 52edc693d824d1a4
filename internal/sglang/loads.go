package sglang

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Detail says how much of a rank's load a snapshot shows.
type Detail int

const (
	// DetailPartial shows running and waiting only: nothing is known of paused or retracted
	// requests, so zero does not prove that the rank is idle.
	DetailPartial Detail = iota
	// DetailFull shows every queue a request can rest in.
	DetailFull
)

// LoadSnapshot is the load of one data-parallel rank as its scheduler last wrote it down. It goes
// stale while the engine is paused or hung, and requests that wait in the engine's front because
// of a pause are not in it.
type LoadSnapshot struct {
	// Rank is the data-parallel rank.
	Rank int
	// Timestamp is when the scheduler wrote the snapshot, in seconds by the engine's own clock and
	// as the engine sent it. It may be compared with other timestamps of the same rank only; the
	// older form counts from an arbitrary start.
	Timestamp float64
	// Running, Waiting, Paused and Retracted count requests. Waiting includes those that wait for
	// a grammar or for memory.
	Running, Waiting, Paused, Retracted int64
	// MaxRunning is how many requests the rank runs at once, 0 if it is not told.
	MaxRunning int64
	// Detail says whether Paused and Retracted were told.
	Detail Detail
}

// Total is the number of requests the snapshot knows of.
func (l LoadSnapshot) Total() int64 { return l.Running + l.Waiting + l.Paused + l.Retracted }

// LoadsCapacity is how many executions the engine runs at once, summed over its ranks, and 0 if
// there are none or one of them does not tell.
func LoadsCapacity(loads []LoadSnapshot) int64 {
	var sum int64
	for _, load := range loads {
		if load.MaxRunning <= 0 {
			return 0
		}
		sum += load.MaxRunning
	}
	return sum
}

type loadsReply struct {
	Loads []struct {
		Timestamp  engineTime `json:"timestamp"`
		Rank       int        `json:"dp_rank"`
		Running    int64      `json:"num_running_reqs"`
		Waiting    int64      `json:"num_waiting_reqs"`
		MaxRunning int64      `json:"max_running_requests"`
		Queues     *struct {
			Waiting   int64 `json:"waiting"`
			Grammar   int64 `json:"grammar"`
			Paused    int64 `json:"paused"`
			Retracted int64 `json:"retracted"`
			Prealloc  int64 `json:"prealloc_ready"`
		} `json:"queues"`
	} `json:"loads"`
}

// Loads reads the load of every rank. Engines that do not know /v1/loads are asked for the older
// form, whose snapshots are DetailPartial.
func (c *Client) Loads(ctx context.Context) ([]LoadSnapshot, error) {
	const route = "/v1/loads"
	body, err := c.do(ctx, call{
		method: http.MethodGet, route: route, query: "include=core,queues", access: normal, limit: infoReply,
	})
	if absent(err) {
		return c.olderLoads(ctx)
	}
	if err != nil {
		return nil, err
	}
	var reply loadsReply
	if err := decode(route, body, &reply); err != nil {
		return nil, err
	}
	snapshots := make([]LoadSnapshot, 0, len(reply.Loads))
	for _, l := range reply.Loads {
		snapshot := LoadSnapshot{
			Rank: l.Rank, Timestamp: float64(l.Timestamp),
			Running: l.Running, Waiting: l.Waiting, MaxRunning: l.MaxRunning,
		}
		if q := l.Queues; q != nil {
			// Requests in the grammar and preallocation queues are executions to come that
			// num_waiting_reqs may leave out. Counting one twice is harmless: only zero is proof.
			snapshot.Waiting = max(l.Waiting, q.Waiting) + q.Grammar + q.Prealloc
			snapshot.Paused, snapshot.Retracted, snapshot.Detail = q.Paused, q.Retracted, DetailFull
		}
		snapshots = append(snapshots, snapshot)
	}
	return checked(route, snapshots)
}

// olderLoads reads the form that /v1/loads replaced.
func (c *Client) olderLoads(ctx context.Context) ([]LoadSnapshot, error) {
	const route = "/get_load"
	var reply []struct {
		Rank      int        `json:"dp_rank"`
		All       int64      `json:"num_reqs"`
		Waiting   int64      `json:"num_waiting_reqs"`
		Timestamp engineTime `json:"ts_tic"`
	}
	if err := c.get(ctx, route, "", &reply); err != nil {
		return nil, err
	}
	snapshots := make([]LoadSnapshot, 0, len(reply))
	for _, l := range reply {
		snapshots = append(snapshots, LoadSnapshot{
			Rank: l.Rank, Timestamp: float64(l.Timestamp), Running: l.All - l.Waiting, Waiting: l.Waiting,
		})
	}
	return checked(route, snapshots)
}

// checked refuses loads that prove nothing: none at all, a rank twice, or a negative count.
func checked(route string, loads []LoadSnapshot) ([]LoadSnapshot, error) {
	if len(loads) == 0 {
		return nil, fmt.Errorf("%s: %w: no rank", route, ErrMalformed)
	}
	seen := make(map[int]struct{}, len(loads))
	for _, l := range loads {
		if _, twice := seen[l.Rank]; twice {
			return nil, fmt.Errorf("%s: %w: rank %d twice", route, ErrMalformed, l.Rank)
		}
		seen[l.Rank] = struct{}{}
		if min(l.Running, l.Waiting, l.Paused, l.Retracted, l.MaxRunning) < 0 {
			return nil, fmt.Errorf("%s: %w: a negative count on rank %d", route, ErrMalformed, l.Rank)
		}
	}
	return loads, nil
}

// engineTime is a time of the engine in seconds. Releases write it as a number or as a date.
type engineTime float64

func (t *engineTime) UnmarshalJSON(data []byte) error {
	if text, quoted := bytes.CutPrefix(data, []byte(`"`)); quoted {
		return t.parseDate(string(bytes.TrimSuffix(text, []byte(`"`))))
	}
	if string(data) == "null" {
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(number.String(), 64)
	*t = engineTime(seconds)
	return err
}

func (t *engineTime) parseDate(text string) error {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if date, err := time.Parse(layout, text); err == nil {
			*t = engineTime(float64(date.Unix()) + float64(date.Nanosecond())/1e9)
			return nil
		}
	}
	return fmt.Errorf("timestamp %q is neither a number nor a date", text)
}
