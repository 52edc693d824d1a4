package controller

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// engines answers for a host as its function says.
type engines map[string]func(*http.Request) (*http.Response, error)

func (e engines) RoundTrip(r *http.Request) (*http.Response, error) { return e[r.URL.Host](r) }

func says(code int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// errandTo is an order to the engine of a host; its end is sent on the channel.
func errandTo(t *testing.T, host string, o order, ended chan<- string) errand {
	t.Helper()
	base, err := sglang.ParseBaseURL("http://" + host)
	if err != nil {
		t.Fatal(err)
	}
	return errand{
		incarnation: router.Incarnation(host), url: base, order: o,
		ended: func(context.Context) { ended <- host },
	}
}

func TestTheDeskGivesOneOrderAtATimeAndAHungEngineDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ok := says(http.StatusOK, `{"status":"ok"}`)
		d := newDesk(engines{"hung:80": hangs, "well:80": ok}, clock.RealClock{})
		defer d.close()
		ended := make(chan string, 4)
		pause := order{kind: orderPause, mode: v1alpha1.PauseRetract}
		d.give("pool", errandTo(t, "hung:80", pause, ended))
		d.give("pool", errandTo(t, "hung:80", goingOn, ended))
		d.give("pool", errandTo(t, "well:80", pause, ended))
		synctest.Wait()
		if got := <-ended; got != "well:80" {
			t.Fatalf("%s ended first", got)
		}
		memory := d.remember("pool")
		if !memory["well:80"].did(pause) || !memory["hung:80"].under.same(pause) {
			t.Fatalf("remembered %+v, want a pause done and a pause under way", memory)
		}
		before := time.Now()
		if got := <-ended; got != "hung:80" || time.Since(before) != callBound {
			t.Errorf("%s ended after %v, want the hung engine after %v", got, time.Since(before), callBound)
		}
		if m := d.remember("pool")["hung:80"]; m.busy() || m.failures != 1 || m.fault != "pause: the engine did not answer in time" {
			t.Errorf("remembered of the hung engine: %+v", m)
		}
		if len(ended) != 0 {
			t.Error("an order was given while another was under way")
		}
	})
}

func TestTheDeskRemembersTheEnginesWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(engines{"a:80": says(http.StatusInternalServerError, `{"error":{"message":"no\nway"}}`)}, clock.RealClock{})
		defer d.close()
		ended := make(chan string, 1)
		d.give("pool", errandTo(t, "a:80", goingOn, ended))
		<-ended
		if got, want := d.remember("pool")["a:80"].fault, "continue: /continue_generation answered 500: no way"; got != want {
			t.Errorf("fault %q, want %q", got, want)
		}
	})
}

func TestTheDeskCutsWhatIsUnderWayForAPoolThatIsDropped(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(engines{"hung:80": hangs}, clock.RealClock{})
		ended := make(chan string, 1)
		d.give("pool", errandTo(t, "hung:80", goingOn, ended))
		synctest.Wait()
		began := time.Now()
		d.drop("pool")
		<-ended
		if time.Since(began) != 0 || d.remember("pool") != nil {
			t.Error("the order went on, or is remembered, after its pool was dropped")
		}
		d.close()
		d.give("pool", errandTo(t, "hung:80", goingOn, ended))
		if len(ended) != 0 {
			t.Error("a closed desk takes orders")
		}
	})
}

func TestOnlyTheFirstPauseThatAbortsProvesAnything(t *testing.T) {
	r := &Reconciler{clock: clock.RealClock{}}
	table := router.NewTable("pool", nil, noon)
	for _, c := range []struct {
		order  order
		proves bool
	}{
		{order{kind: orderPause, mode: v1alpha1.PauseAbort, first: first}, true},
		{order{kind: orderPause, mode: v1alpha1.PauseAbort}, false},
		{order{kind: orderPause, mode: v1alpha1.PauseRetract, first: first}, false},
		{order{kind: orderPause, mode: v1alpha1.PauseInPlace, first: first}, false},
		{order{kind: orderContinue, first: first}, false},
	} {
		if got := r.proofOf(table, "a", c.order) != nil; got != c.proves {
			t.Errorf("%s %s: proves %v, want %v", c.order.kind, c.order.mode, got, c.proves)
		}
	}
}
