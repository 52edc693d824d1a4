package prober

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// nameless is an engine that generates and does not tell what.
func nameless(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/model_info" {
		return respond(404, "")
	}
	return generating("")(r)
}

func TestAVersionOfBeforeAConnectionRefusedToSomebodyElseIsNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v7"))
		w.Set("p", []Target{aTarget(t, "a")})
		pass(4 * time.Second)
		w.net.set("a:30000", nameless) // a new process
		if err := w.Refused(a); err != nil {
			t.Fatal(err)
		}
		refused := time.Now()
		if got := w.Latest("p")["a"]; !got.Wanting.Equal(refused) || got.Verdict != Refused || got.Reason != ReasonConnectionRefused || got.VersionConfirmed {
			t.Errorf("right after it: %+v", got)
		}
		for range 10 {
			pass(5 * time.Second)
			if got := w.Latest("p")["a"]; got.Verdict != Healthy || got.VersionConfirmed || !got.Wanting.Equal(refused) {
				t.Fatalf("confirmed on a version that nobody has read since: %+v", got)
			}
		}
		w.net.set("a:30000", generating("v7"))
		pass(7 * time.Second)
		if got := w.Latest("p")["a"]; !got.VersionConfirmed {
			t.Errorf("after it was read anew: %+v", got)
		}
	})
}

// slowToTell is an engine that waits after it has told its version.
func slowToTell(version string) behaviour {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/v1/loads" {
			return after(r, 3*time.Second, 200, "")
		}
		return generating(version)(r)
	}
}

func TestAProbeThatReadTheVersionBeforeSomebodyWasRefusedChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", slowToTell("v7"))
		w.Set("p", []Target{aTarget(t, "a")})
		pass(2 * time.Second) // /model_info was answered at 1.5 s
		if n := len(w.net.times("a:30000/model_info")); n != 1 || len(w.journal.of(a)) != 0 {
			t.Fatalf("the version was read %d times, %d observations", n, len(w.journal.of(a)))
		}
		w.net.set("a:30000", nameless)
		refused := time.Now()
		_ = w.Refused(a)
		pass(4 * time.Second)
		for _, obs := range w.journal.of(a) {
			if obs.VersionConfirmed || obs.WeightVersion != "" {
				t.Errorf("believed: %+v", obs)
			}
		}
		if times := w.net.times("a:30000/health"); len(times) != 2 || !times[1].Equal(refused) {
			t.Errorf("probed at %v, want again at %v", times, refused)
		}
		if got := w.Latest("p")["a"]; got.Verdict != Healthy {
			t.Errorf("after the next probe: %+v", got)
		}
	})
}

func TestNobodyIsRefusedByATargetThatIsNotThere(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		if err := w.Refused(a); !errors.Is(err, ErrUnknownTarget) {
			t.Errorf("got %v", err)
		}
	})
}
