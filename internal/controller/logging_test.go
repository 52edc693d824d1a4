package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// book is a log that can be read.
type book struct{ bytes.Buffer }

func (b *book) handler() slog.Handler {
	return slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
}

// lines are what was written, without the times.
func (b *book) lines(t *testing.T) (out []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(&b.Buffer); d.More(); {
		line := map[string]any{}
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		out = append(out, line)
	}
	return out
}

func TestWhatAStatusWriteChangesIsLoggedWithWhomItConcerns(t *testing.T) {
	before := &v1alpha1.InferencePoolStatus{Term: 2, Epoch: 1, Backends: []v1alpha1.BackendStatus{{Name: "a", Incarnation: "u/c", State: v1alpha1.BackendServing}}}
	after := before.DeepCopy()
	after.Failure = &v1alpha1.PoolFailure{RequestID: "r", SessionID: "s", Backend: "a", Incarnation: "u/c"}
	after.Backends[0].State = v1alpha1.BackendDraining
	var b book
	logChanges(slog.New(b.handler()), changesBetween(before, after))
	want := []map[string]any{
		{
			"level": "WARN", "msg": "pool: changed", "reason": "PoolFailed", "note": "request r on backend a could not be proven dead",
			"request": "r", "session": "s", "backend": "a", "incarnation": "u/c",
		},
		{"level": "INFO", "msg": "pool: changed", "reason": "BackendDraining", "note": "backend a is Draining", "backend": "a", "incarnation": "u/c"},
	}
	if diff := cmp.Diff(want, b.lines(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLinesOfAReconcileSayPoolAndTerm(t *testing.T) {
	var b book
	key := types.NamespacedName{Namespace: "rl", Name: "policy"}
	r := &Reconciler{tenures: &tenures{byKey: map[types.NamespacedName]*tenure{key: {key: key, term: 4}}}}
	loggerOf := r.logOf(logr.FromSlogHandler(b.handler()))
	loggerOf(&ctrl.Request{NamespacedName: key}).Error(errors.New("no"), "Reconciler error")
	ctx := log.IntoContext(context.Background(), loggerOf(&ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "rl", Name: "new"}}))
	(&world{}).lines(ctx, 1).Warn("leads")
	(&world{}).lines(ctx, 0).Info("follows")
	want := []map[string]any{
		{"level": "ERROR", "msg": "Reconciler error", "err": "no", "controller": "inferencepool", "pool": "rl/policy", "term": 4.0},
		{"level": "WARN", "msg": "leads", "controller": "inferencepool", "pool": "rl/new", "term": 1.0},
		{"level": "INFO", "msg": "follows", "controller": "inferencepool", "pool": "rl/new"},
	}
	if diff := cmp.Diff(want, b.lines(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHowAnOrderEndedIsLoggedByWhatItIsWorth(t *testing.T) {
	pause := order{kind: orderPause, mode: v1alpha1.PauseAbort}
	for name, c := range map[string]struct {
		order order
		err   error
		level string
	}{
		"a pause that was done":        {pause, nil, "INFO"},
		"a pause that was declined":    {pause, sglang.ErrDeclined, "WARN"},
		"a pause that nobody awaits":   {pause, context.Canceled, "DEBUG"},
		"a question that was answered": {order{kind: orderVerify}, nil, "DEBUG"},
	} {
		var b book
		orderLines(slog.New(b.handler()).With("pool", "rl/policy", "term", 4), "a", "u/c", c.order)(c.err)
		line := b.lines(t)[0]
		if line["level"] != c.level || line["backend"] != "a" || line["incarnation"] != "u/c" || line["pool"] != "rl/policy" || line["order"] != c.order.kind.String() {
			t.Errorf("%s: %v", name, line)
		}
	}
}

func TestTheDeskTellsHowAnOrderEnded(t *testing.T) {
	ended, told := make(chan string, 1), make(chan error, 1)
	d := newDesk(engines{"a:80": says(http.StatusBadRequest, `{}`)}, clock.RealClock{})
	defer d.close()
	e := errandTo(t, "a:80", order{kind: orderPause, mode: v1alpha1.PauseAbort}, ended)
	e.tells = func(err error) { told <- err }
	d.give("pool", e)
	<-ended
	if err := <-told; err == nil {
		t.Error("an order that was refused is told as done")
	}
}
