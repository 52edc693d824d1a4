package server

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestTheLiveViewShowsWhatTheRouterKnows(t *testing.T) {
	w := newWorld(t, 2, func(_ *Config, f *router.Fleet) { f.Published = "step-41" })
	w.change(func(f *router.Fleet) { f.Members[1].Drain, f.Target = router.DrainMove, "step-42" })
	w.lease("r1", "s1", object{"executions": 8})
	r := w.do(http.MethodGet, w.pool, nil)
	backend := func(i string, more object) object {
		o := object{
			"name": "b" + i, "incarnation": "pod-" + i + "/c-1", "url": "http://127.0.0.1:3000" + i, "admissible": true, "reason": "",
			"health": "Healthy", "drain": "", "drained": false, "engine": "", "retired": false, "capacity": 64.0, "outstanding": 0.0, "held": 0.0,
			"sessions": 0.0, "unknownLoad": false, "settling": false, "isolated": false, "weightVersion": "step-41",
		}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	if diff := cmp.Diff(object{
		"uid": "uid-1", "epoch": 1.0, "term": 1.0, "leasing": "Open", "publishedVersion": "step-41", "targetVersion": "step-42",
		"sessions": 1.0, "requests": 1.0, "waiting": 0.0, "queues": []any{},
		"backends": []any{
			backend("0", object{"outstanding": 8.0, "sessions": 1.0}),
			backend("1", object{"admissible": false, "reason": "Draining", "drain": "Move", "drained": true}),
		},
		"senders": []any{
			object{"name": "eval", "access": "Open", "minGeneration": 0.0, "counted": 0.0, "fenced": false},
			object{"name": "train", "access": "Open", "minGeneration": 3.0, "counted": 8.0, "fenced": false},
		},
	}, r.body); diff != "" || r.status != http.StatusOK {
		t.Error(r.status, diff)
	}
}

func TestTheLiveViewNamesTheFailure(t *testing.T) {
	w := newWorld(t, 1)
	w.fail()
	r := w.do(http.MethodGet, w.pool, nil)
	if diff := cmp.Diff(object{
		"requestID": "doubtful", "sessionID": "s9", "backend": "b0", "incarnation": "pod-0/c-1", "time": "2023-11-14T22:13:20Z",
	}, r.body["failure"]); diff != "" {
		t.Error(diff)
	}
}

func TestASessionIsExplainedByTheScoresOfItsChoice(t *testing.T) {
	w := newWorld(t, 2)
	w.lease("r0", "s0", object{"executions": 8})
	home := w.lease("r1", "s1").text("backend", "name")
	other := map[string]string{"b0": "b1", "b1": "b0"}[home]
	r := w.do(http.MethodGet, w.pool+"/sessions/s1", nil)
	if diff := cmp.Diff(object{
		"sessionID": "s1", "sender": "train", "backend": object{"name": home, "incarnation": "pod-" + home[1:] + "/c-1"}, "activeLeases": 1.0,
		"choice": object{
			"why": "Placed", "candidates": 2.0,
			"chosen":   object{"backend": home, "outstanding": 0.0, "capacity": 64.0, "sessions": 0.0},
			"runnerUp": object{"backend": other, "outstanding": 8.0, "capacity": 64.0, "sessions": 1.0},
		},
	}, r.body); diff != "" {
		t.Error(diff)
	}
}
