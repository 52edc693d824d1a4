package conformance

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func updateRows() []row { return slices.Concat(versionRows(), diskRows(), groupRows(), lockRows()) }

func versionRows() []row {
	return []row{
		{"1.5", "a version can be set by itself and aborts everything unless told not to", admin, nil, func(t *testing.T, e *engine) {
			before := e.version(t)
			p := e.hold(t)
			o := e.ok(t, "/update_weight_version", `{"new_version":"v-a","abort_all_requests":false}`).object(t)
			if o["success"] != true || o["message"] != "Weight version updated to v-a" || o["new_version"] != "v-a" {
				t.Errorf("%v", o)
			}
			if p.answered() || e.version(t) != "v-a" {
				t.Error("aborted, or not set")
			}
			e.ok(t, "/update_weight_version", `{"new_version":"v-b"}`)
			var g generated
			p.wait(t).decode(t, &g)
			if g.Meta.Reason["type"] != "abort" {
				t.Errorf("%v", g.Meta.Reason)
			}
			e.ok(t, "/update_weight_version", body(map[string]any{"new_version": before}))
			wantStatus(t, e.post(t, "/update_weight_version", `{}`), http.StatusBadRequest)
		}},
		{"1.4", "a request that spans a change of version reports only the last", admin, nil, func(t *testing.T, e *engine) {
			before := e.version(t)
			set := func(v string) func() {
				return func() {
					e.ok(t, "/update_weight_version", body(map[string]any{"new_version": v, "abort_all_requests": false}))
				}
			}
			p, _ := e.catch(t, set("later"), set(before))
			var g generated
			p.wait(t).decode(t, &g)
			if g.Meta.Version != "later" {
				t.Errorf("version %q", g.Meta.Version)
			}
			e.ok(t, "/update_weight_version", body(map[string]any{"new_version": before}))
		}},
	}
}

func diskRows() []row {
	return []row{
		{"1.5", "an update from disk sets path, served name and version, and says so", weights, nil, func(t *testing.T, e *engine) {
			o := e.ok(t, "/update_weights_from_disk", body(map[string]any{"model_path": e.model, "weight_version": "v2"})).object(t)
			if o["success"] != true || o["message"] != "Succeeded to update model weights. Weight version updated to v2." {
				t.Errorf("%v", o)
			}
			wantKeys(t, o, "num_paused_requests")
			if e.version(t) != "v2" || e.get(t, "/model_info").object(t)["model_path"] != e.model {
				t.Error("the model or its version is not the new one")
			}
			var models struct {
				Data []struct {
					ID string `json:"id"`
				} `json:"data"`
			}
			e.get(t, "/v1/models").decode(t, &models)
			if models.Data[0].ID != e.model {
				t.Errorf("/v1/models still says %s", models.Data[0].ID)
			}
		}},
		{"1.5", "without a weight_version an update leaves the version as it was", weights, nil, func(t *testing.T, e *engine) {
			before := e.version(t)
			e.ok(t, "/update_weights_from_disk", body(map[string]any{"model_path": e.model}))
			if after := e.version(t); after != before {
				t.Errorf("version %q, was %q", after, before)
			}
		}},
		{"1.5", "a failed update is 400 with success false and changes nothing", simulator, nil, func(t *testing.T, e *engine) {
			e.fault(t, `{"kind":"update-fails","message":"no such file","count":1}`)
			r := e.post(t, "/update_weights_from_disk", `{"model_path":"gone","weight_version":"v9"}`)
			wantStatus(t, r, http.StatusBadRequest)
			if o := r.object(t); o["success"] != false || o["message"] != "no such file" {
				t.Errorf("%v", o)
			}
			if e.version(t) != "default" {
				t.Error("the version changed")
			}
			e.ok(t, "/update_weights_from_disk", `{"model_path":"there"}`)
		}},
		{"1.5", "a failed update can also be 200 with success false", simulator, nil, func(t *testing.T, e *engine) {
			e.fault(t, `{"kind":"update-fails","status":200}`)
			if o := e.ok(t, "/update_weights_from_disk", `{"model_path":"gone"}`).object(t); o["success"] != false {
				t.Errorf("%v", o)
			}
		}},
		{"1.5", "an engine can come back from an update with the wrong version", simulator, nil, func(t *testing.T, e *engine) {
			e.fault(t, `{"kind":"wrong-version","version":"v1"}`)
			e.ok(t, "/update_weights_from_disk", `{"model_path":"m","weight_version":"v2"}`)
			if v := e.version(t); v != "v1" {
				t.Errorf("version %q", v)
			}
		}},
		{"1.5", "with several ranks the number of paused requests is a list", simulator, twoRanks, func(t *testing.T, e *engine) {
			o := e.ok(t, "/update_weights_from_disk", `{"model_path":"m"}`).object(t)
			if list, ok := o["num_paused_requests"].([]any); !ok || len(list) != 2 {
				t.Errorf("%v", o)
			}
		}},
		{"1.5", "an update without a model path is 400", weights, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.post(t, "/update_weights_from_disk", `{}`), http.StatusBadRequest)
		}},
		{"1.5", "the checksum follows the weights and not the version", simulator, nil, func(t *testing.T, e *engine) {
			sum := func() any {
				o := e.ok(t, "/weights_checker", `{"action":"checksum"}`).object(t)
				wantKeys(t, o, "success", "message", "ranks", "per_engine_checksum")
				return o["per_engine_checksum"]
			}
			first := sum()
			e.ok(t, "/update_weight_version", `{"new_version":"v2"}`)
			if sum() != first {
				t.Error("it changed with the version")
			}
			e.ok(t, "/update_weights_from_disk", `{"model_path":"m2"}`)
			if sum() == first {
				t.Error("it did not change with the weights")
			}
			wantStatus(t, e.get(t, "/weights_checker"), http.StatusOK)
		}},
	}
}

const groupBody = `{"master_address":"10.0.0.1","master_port":29500,"rank_offset":1,"world_size":2,"group_name":"g"}`
const distributedBody = `{"names":["w"],"dtypes":["bfloat16"],"shapes":[[2,2]],"group_name":"g","weight_version":"v3"}`

func groupRows() []row {
	return []row{
		{"1.5", "an update from a group needs the group, and works with it", simulator, nil, func(t *testing.T, e *engine) {
			r := e.post(t, "/update_weights_from_distributed", distributedBody)
			wantStatus(t, r, http.StatusBadRequest)
			if r.object(t)["success"] != false {
				t.Error(r.body)
			}
			e.ok(t, "/init_weights_update_group", groupBody)
			if o := e.ok(t, "/update_weights_from_distributed", distributedBody).object(t); o["success"] != true || e.version(t) != "v3" {
				t.Errorf("%v", o)
			}
			e.ok(t, "/destroy_weights_update_group", `{"group_name":"g"}`)
			wantStatus(t, e.post(t, "/destroy_weights_update_group", `{"group_name":"g"}`), http.StatusBadRequest)
			wantStatus(t, e.post(t, "/update_weights_from_distributed", distributedBody), http.StatusBadRequest)
		}},
		{"1.5", "an update from tensors and from IPC handles sets the version", simulator, nil, func(t *testing.T, e *engine) {
			e.ok(t, "/update_weights_from_tensor", `{"serialized_named_tensors":["AAAA"],"weight_version":"t1"}`)
			if v := e.version(t); v != "t1" {
				t.Errorf("after tensors: %q", v)
			}
			e.ok(t, "/update_weights_from_ipc", `{"zmq_handles":{"0":"ipc:///tmp/h"},"weight_version":"t2"}`)
			if v := e.version(t); v != "t2" {
				t.Errorf("after IPC: %q", v)
			}
		}},
		{"1.5", "distributed and tensor updates assert one data-parallel rank", simulator, twoRanks, func(t *testing.T, e *engine) {
			wantStatus(t, e.post(t, "/update_weights_from_distributed", distributedBody), http.StatusInternalServerError)
			wantStatus(t, e.post(t, "/update_weights_from_tensor", `{"serialized_named_tensors":["AAAA"]}`), http.StatusInternalServerError)
			wantStatus(t, e.post(t, "/init_weights_update_group", groupBody), http.StatusInternalServerError)
		}},
	}
}

func lockRows() []row {
	return []row{
		{"1.5", "unpaused an update waits for requests in flight and holds new ones back", simulator, nil, checkLock},
		{"1.5", "paused an update runs at once, requests or not", weights, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.pause(t, "in_place")
			e.ok(t, "/update_weights_from_disk", body(map[string]any{"model_path": e.model, "flush_cache": false}))
			if p.answered() {
				t.Error("the request ended")
			}
			e.ok(t, "/continue_generation", "{}")
			e.abort(t, p.rid)
			wantStatus(t, p.wait(t), http.StatusOK)
		}},
		{"1.5", "abort_all_requests clears the way for an update", weights, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.ok(t, "/update_weights_from_disk", body(map[string]any{"model_path": e.model, "abort_all_requests": true}))
			var g generated
			p.wait(t).decode(t, &g)
			if g.Meta.Reason["type"] != "abort" {
				t.Errorf("the request ended with %v", g.Meta.Reason)
			}
		}},
		{"1.5", "an update that flushes a busy engine kills it", simulator, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.pause(t, "in_place")
			if r := e.post(t, "/update_weights_from_disk", `{"model_path":"m"}`); !cut(r) {
				t.Errorf("it answered %d", r.status)
			}
			e.wantExit(t, 131)
			if r := p.wait(t); !cut(r) {
				t.Errorf("the request was answered: %d", r.status)
			}
		}},
		{"1.5", "an update that flushes an engine with retracted requests kills it", simulator, nil, func(t *testing.T, e *engine) {
			e.hold(t)
			e.pause(t, "retract")
			e.post(t, "/update_weights_from_disk", `{"model_path":"m"}`)
			e.wantExit(t, 131)
		}},
		{"1.5", "an update that flushes after a pause in mode abort is safe", weights, nil, func(t *testing.T, e *engine) {
			e.hold(t)
			e.pause(t, "abort")
			e.ok(t, "/update_weights_from_disk", body(map[string]any{"model_path": e.model}))
			e.ok(t, "/continue_generation", "{}")
			e.ok(t, "/generate", `{"text":"x","sampling_params":{"max_new_tokens":1}}`)
		}},
		{"1.5", "an update takes the time it takes", simulator, func(c *enginesim.Config) { c.UpdateTime = 10 * time.Second },
			func(t *testing.T, e *engine) {
				if r := e.ok(t, "/update_weights_from_disk", `{"model_path":"m"}`); r.latency < 10*e.second {
					t.Errorf("it took %v, an engine second is %v", r.latency, e.second)
				}
			}},
	}
}

func checkLock(t *testing.T, e *engine) {
	p := e.hold(t)
	update := e.background(t, "/update_weights_from_disk", `{"model_path":"m","weight_version":"v2"}`)
	eventually(t, "the update waits", func() bool { return e.get(t, "/sim/state").object(t)["updates_waiting"] == 1.0 })
	late := e.background(t, "/generate", `{"text":"late","sampling_params":{"max_new_tokens":1}}`)
	eventually(t, "the late request waits", func() bool { return e.get(t, "/sim/state").object(t)["parked"] == 1.0 })
	if update.answered() || late.answered() || p.answered() {
		t.Error("somebody did not wait")
	}
	e.abort(t, p.rid)
	wantStatus(t, p.wait(t), http.StatusOK)
	wantStatus(t, update.wait(t), http.StatusOK)
	var g generated
	late.wait(t).decode(t, &g)
	if g.Meta.Version != "v2" {
		t.Errorf("the late request got %q", g.Meta.Version)
	}
}
