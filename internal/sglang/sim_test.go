package sglang_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// simulated is a client of a simulated engine on loopback that lives fifty times as fast as a real one.
func simulated(t *testing.T, config enginesim.Config, keys sglang.KeySource) (*sglang.Client, context.Context) {
	t.Helper()
	config.Speed = 50
	engine, err := enginesim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- socket.Serve() }()
	transport := sglang.NewTransport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		engine.Close()
		<-done
	})
	base, err := sglang.ParseBaseURL(socket.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return sglang.New(base, transport, keys), ctx
}

// must fails the test on an error of a call that has no other result.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestASimulatedEngineIsUnderstood(t *testing.T) {
	keys := func() sglang.Keys { return sglang.Keys{API: "api", Admin: "adm"} }
	client, ctx := simulated(t, enginesim.Config{
		DPSize: 2, WeightVersion: "v7", APIKey: "api", AdminAPIKey: "adm", UpdateTime: time.Second,
	}, keys)
	must(t, client.Health(ctx))
	model, err := client.ModelInfo(ctx)
	if err != nil || model.WeightVersion != "v7" {
		t.Errorf("got %+v, %v", model, err)
	}
	loads, err := client.Loads(ctx)
	if err != nil || len(loads) != 2 || loads[0].Detail != sglang.DetailFull || loads[0].Total() != 0 || loads[0].Timestamp <= 0 {
		t.Errorf("got %+v, %v", loads, err)
	}
	info, err := client.ServerInfo(ctx)
	if err != nil || info.Capacity() <= 0 || info.Capacity() != sglang.LoadsCapacity(loads) {
		t.Errorf("got %+v, %v; the loads say %d", info, err, sglang.LoadsCapacity(loads))
	}
	must(t, client.AbortRequest(ctx, "nobody"))
	must(t, client.Pause(ctx, sglang.PauseAbort))
	must(t, client.FlushCache(ctx, time.Second))
	must(t, client.UpdateFromDisk(ctx, sglang.DiskUpdate{Path: "/weights/8", Version: "v8", Flush: sglang.FlushIdle}))
	must(t, client.Continue(ctx))
	must(t, client.Health(ctx))
	model, err = client.ModelInfo(ctx)
	if err != nil || model.WeightVersion != "v8" || model.ModelPath != "/weights/8" {
		t.Errorf("got %+v, %v", model, err)
	}
	must(t, client.SetWeightVersion(ctx, "v9"))
	if model, err = client.ModelInfo(ctx); err != nil || model.WeightVersion != "v9" {
		t.Errorf("got %+v, %v", model, err)
	}
}

func TestAPausedSimulatedEngineFailsItsHealthAndStillDescribesItself(t *testing.T) {
	client, ctx := simulated(t, enginesim.Config{}, nil)
	must(t, client.Pause(ctx, sglang.PauseInPlace))
	if err := client.Health(ctx); sglang.Code(err) != 503 {
		t.Errorf("health: %v", err)
	}
	if _, err := client.ServerInfo(ctx); err != nil {
		t.Errorf("server info: %v", err)
	}
	must(t, client.Continue(ctx))
	must(t, client.Health(ctx))
}

func TestASimulatedUpdateThatFailsIsDeclined(t *testing.T) {
	for _, status := range []int{200, 400} {
		client, ctx := simulated(t, enginesim.Config{
			Faults: []enginesim.Fault{{Kind: enginesim.FaultUpdateFails, Status: status, Message: "no such weights"}},
		}, nil)
		err := client.UpdateFromDisk(ctx, sglang.DiskUpdate{Path: "/w", Version: "v8"})
		if !errors.Is(err, sglang.ErrDeclined) {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

func TestAnOlderSimulatedEngineShowsItsLoadInPartOnly(t *testing.T) {
	client, ctx := simulated(t, enginesim.Config{Legacy: enginesim.LegacyOnly, WeightVersion: "v7"}, nil)
	if model, err := client.ModelInfo(ctx); err != nil || model.WeightVersion != "v7" {
		t.Errorf("got %+v, %v", model, err)
	}
	if loads, err := client.Loads(ctx); err != nil || len(loads) != 1 || loads[0].Detail != sglang.DetailPartial {
		t.Errorf("got %+v, %v", loads, err)
	}
}
