package controller

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// restarted is an engine on v7 that answers each call after half a second, and once it was restarted tells
// no version.
type restarted struct{ mute atomic.Bool }

func (e *restarted) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := 200, ""
	switch {
	case r.URL.Path != "/model_info":
	case e.mute.Load():
		code = 404
	default:
		body = `{"weight_version":"v7"}`
	}
	select {
	case <-time.After(time.Second / 2):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestARestartedEngineServesOnlyOnceItsVersionIsReadAnew has a client's refused connection be all that
// tells of the restart, at every moment of a probe (R9).
func TestARestartedEngineServesOnlyOnceItsVersionIsReadAnew(t *testing.T) {
	for moment := range 20 {
		synctest.Test(t, func(t *testing.T) {
			ts := newTenures(router.NewPools(), func(context.Context, types.NamespacedName) {}, untilDone)
			defer ts.close()
			table := ts.enter(t.Context(), thePool, "u", time.Now()).table
			table.Lead(1, router.Takeover{}, time.Now())
			fleet := router.Fleet{Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Published: "v7", Members: []router.Member{
				{Name: "a", Incarnation: "a/1", URL: "http://a:1", Capacity: 4},
			}}
			if err := table.Apply(fleet, time.Now()); err != nil {
				t.Fatal(err)
			}
			engine := &restarted{}
			probes := prober.New(ts, prober.Config{Transport: engine, Jitter: func() float64 { return 0.5 }})
			defer probes.Close()
			base, err := sglang.ParseBaseURL("http://a:1")
			if err != nil {
				t.Fatal(err)
			}
			probes.Set("u", []prober.Target{{Incarnation: "a/1", URL: base, Period: 4 * time.Second, Timeout: time.Minute, FailureThreshold: 3}})
			pass := func(d time.Duration) router.BackendSnapshot {
				<-time.After(d)
				synctest.Wait()
				return table.Snapshot(time.Now()).Backends[0]
			}
			if b := pass(10*time.Second + time.Duration(moment)*200*time.Millisecond); !b.Admissible {
				t.Fatalf("before its restart: %+v", b)
			}
			engine.mute.Store(true)
			table.ConnectionRefused("a/1", time.Now())
			if err := probes.Refused(prober.Key{Pool: "u", Incarnation: "a/1"}); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				if b := pass(200 * time.Millisecond); b.Admissible {
					t.Fatalf("moment %d: it serves on a version of before: %+v", moment, b)
				}
			}
			if b := table.Snapshot(time.Now()).Backends[0]; b.Reason != "VersionUnconfirmed" {
				t.Errorf("moment %d: what keeps it is %q", moment, b.Reason)
			}
			engine.mute.Store(false)
			if b := pass(8 * time.Second); !b.Admissible {
				t.Errorf("moment %d: its version was read anew: %+v", moment, b)
			}
		})
	}
}
