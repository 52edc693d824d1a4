package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

func TestThePastIsWhatTheStatusOrTheAnchorSaysWhicheverIsMore(t *testing.T) {
	failed := v1alpha1.InferencePoolStatus{Term: 7, Lives: 2, StartSecondsHighWater: 30, Failure: &v1alpha1.PoolFailure{Epoch: 4}}
	for name, c := range map[string]struct {
		status     v1alpha1.InferencePoolStatus
		annotation string
		want       anchor
	}{
		"a pool that nobody had":                  {want: anchor{}},
		"a status from before there were anchors": {status: failed, want: anchor{7, 2, 30, 4}},
		"a status that was wiped":                 {annotation: `{"term":7,"lives":2,"startSeconds":30,"failedEpoch":4}`, want: anchor{7, 2, 30, 4}},
		"an anchor that ran ahead":                {status: failed, annotation: `{"term":8,"startSeconds":30}`, want: anchor{8, 2, 30, 4}},
		"an anchor that somebody set back":        {status: failed, annotation: `{"term":1}`, want: anchor{7, 2, 30, 4}},
		"an anchor that somebody garbled":         {annotation: `seven`, want: anchor{Term: 1, StartSeconds: longestStart}},
		"an anchor that makes no sense":           {annotation: `{"term":-1}`, want: anchor{Term: 1, StartSeconds: longestStart}},
	} {
		pool := &v1alpha1.InferencePool{Status: c.status}
		if c.annotation != "" {
			pool.Annotations = map[string]string{v1alpha1.AnnotationAnchor: c.annotation}
		}
		if diff := cmp.Diff(c.want, pastOf(pool)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestATakeOverOfAWipedStatusTrustsNothingAndReusesNoTerm(t *testing.T) {
	w := worldWith(running("a"))
	w.standing, w.term = standingNew, 0
	w.pool.Status = v1alpha1.InferencePoolStatus{}
	w.pool.Annotations = map[string]string{v1alpha1.AnnotationAnchor: `{"term":7,"startSeconds":50,"failedEpoch":1}`}
	got := decide(w, noon)
	if got.term != 8 || got.startSeconds != 50 {
		t.Errorf("term %d, start window %d s; want 8 and 50", got.term, got.startSeconds)
	}
	if load := got.berths[0].load; load != router.LoadUnknown {
		t.Errorf("load %v, want unknown", load)
	}
	if failure := pastFailure(&w, noon); failure == nil {
		t.Error("the pool's failure went with the status")
	}
	w.pool.Spec.Epoch = 2
	if failure := pastFailure(&w, noon); failure != nil {
		t.Errorf("failed in an epoch that has not: %+v", failure)
	}
}

func TestALeaderYieldsToATermThatItsStatusDoesNotShowYet(t *testing.T) {
	w := worldWith(running("a"))
	w.pool.Annotations = map[string]string{v1alpha1.AnnotationAnchor: `{"term":4}`}
	if got := decide(w, noon); got.course != courseYield {
		t.Errorf("course %d, want to yield", got.course)
	}
}
