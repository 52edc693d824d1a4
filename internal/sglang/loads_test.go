package sglang

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadsReadsEveryQueueOfEveryRank(t *testing.T) {
	fake := &engine{replies: map[string]reply{"/v1/loads": {200, `{
		"timestamp":"2026-08-01T10:00:00+00:00","version":"0.5.16","loads":[
		{"timestamp":1785578400.25,"dp_rank":0,"num_running_reqs":3,"num_waiting_reqs":2,"max_running_requests":256,
		 "queues":{"waiting":2,"grammar":1,"paused":4,"retracted":5,"prealloc_ready":1}},
		{"timestamp":1785578401,"dp_rank":1,"num_running_reqs":0,"num_waiting_reqs":0,"max_running_requests":128,
		 "queues":{"waiting":0,"grammar":0,"paused":0,"retracted":0,"prealloc_ready":0}}]}`}}}
	got, err := start(t, fake, nil).Loads(context60(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []LoadSnapshot{
		{Rank: 0, Timestamp: 1785578400.25, Running: 3, Waiting: 4, Paused: 4, Retracted: 5, MaxRunning: 256, Detail: DetailFull},
		{Rank: 1, Timestamp: 1785578401, MaxRunning: 128, Detail: DetailFull},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got[0].Total() != 16 || got[1].Total() != 0 || LoadsCapacity(got) != 384 {
		t.Errorf("totals %d and %d, capacity %d", got[0].Total(), got[1].Total(), LoadsCapacity(got))
	}
	if uri := fake.asked()[0].URI; uri != "/v1/loads?include=core,queues" {
		t.Errorf("asked %s", uri)
	}
}

func TestLoadsOfAnOldEngineProveNothingAboutItsHiddenQueues(t *testing.T) {
	fake := &engine{replies: map[string]reply{"/get_load": {200,
		`[{"dp_rank":0,"num_reqs":5,"num_waiting_reqs":2,"num_tokens":9,"num_pending_tokens":1,"ts_tic":12.5}]`}}}
	got, err := start(t, fake, nil).Loads(context60(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []LoadSnapshot{{Timestamp: 12.5, Running: 3, Waiting: 2, Detail: DetailPartial}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if LoadsCapacity(got) != 0 {
		t.Errorf("capacity %d, want unknown", LoadsCapacity(got))
	}
}

func TestLoadsWithoutQueuesArePartial(t *testing.T) {
	fake := &engine{replies: map[string]reply{"/v1/loads": {200, `{"loads":[{"timestamp":1,"num_running_reqs":0}]}`}}}
	got, err := start(t, fake, nil).Loads(context60(t))
	if err != nil || len(got) != 1 || got[0].Detail != DetailPartial {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestATimestampIsReadInEveryFormItIsSent(t *testing.T) {
	for text, want := range map[string]float64{
		`1785578400.25`:                      1785578400.25,
		`1.5e3`:                              1500,
		`"2026-08-01T10:00:00.250000+00:00"`: 1785578400.25,
		`"2026-08-01T10:00:00.25"`:           1785578400.25,
		`null`:                               0,
	} {
		t.Run(text, func(t *testing.T) {
			body := `{"loads":[{"dp_rank":0,"timestamp":` + text + `}]}`
			fake := &engine{replies: map[string]reply{"/v1/loads": {200, body}}}
			got, err := start(t, fake, nil).Loads(context60(t))
			if err != nil || got[0].Timestamp != want {
				t.Errorf("got %+v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestLoadsThatProveNothingAreMalformed(t *testing.T) {
	for name, body := range map[string]string{
		"no rank":            `{"loads":[]}`,
		"no loads":           `{}`,
		"a rank twice":       `{"loads":[{"dp_rank":1,"timestamp":1},{"dp_rank":1,"timestamp":2}]}`,
		"a negative count":   `{"loads":[{"dp_rank":0,"num_running_reqs":-1}]}`,
		"not JSON":           `loads 0`,
		"a time that is not": `{"loads":[{"timestamp":"yesterday"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			fake := &engine{replies: map[string]reply{"/v1/loads": {200, body}}}
			if got, err := start(t, fake, nil).Loads(context60(t)); !errors.Is(err, ErrMalformed) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	older := &engine{replies: map[string]reply{"/get_load": {200, `[{"num_reqs":1,"num_waiting_reqs":2}]`}}}
	if got, err := start(t, older, nil).Loads(context60(t)); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %+v, %v", got, err)
	}
}
