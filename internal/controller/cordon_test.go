package controller

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

func TestCordonCause(t *testing.T) {
	move := drainCause{v1alpha1.ReasonNodeCordoned, router.DrainMove}
	for name, c := range map[string]struct {
		policy v1alpha1.CordonPolicy
		seen   nodeSight
		pod    sighting
		began  time.Time
		want   drainCause
	}{
		"a node that is not cordoned":                     {v1alpha1.CordonMove, nodesKnown, sighting{node: "n"}, noon, drainCause{}},
		"a cordoned node":                                 {v1alpha1.CordonMove, nodesKnown, sighting{node: "n", cordoned: true}, time.Time{}, move},
		"a cordoned node whose sessions stay":             {v1alpha1.CordonKeep, nodesKnown, sighting{node: "n", cordoned: true}, time.Time{}, drainCause{v1alpha1.ReasonNodeCordoned, router.DrainKeep}},
		"a drain that began, while nodes are awaited":     {v1alpha1.CordonMove, nodesAwaited, sighting{node: "n"}, noon, move},
		"no drain began, while nodes are awaited":         {v1alpha1.CordonMove, nodesAwaited, sighting{node: "n"}, time.Time{}, drainCause{}},
		"a backend that is on no node, nodes are awaited": {v1alpha1.CordonMove, nodesAwaited, sighting{}, noon, drainCause{}},
		"a drain that began, and nodes may not be seen":   {v1alpha1.CordonMove, nodesBarred, sighting{node: "n"}, noon, drainCause{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldWith()
			w.pool.Spec.Backends.OnCordon, w.nodes = c.policy, c.seen
			if got := cordonCause(&w, &c.pod, c.began); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAPodsOwnDrainComesBeforeThatOfItsNode(t *testing.T) {
	pod := running("a")
	pod.node, pod.cordoned = "n", true
	pod.drain = drainCause{v1alpha1.ReasonDrainAnnotation, router.DrainKeep}
	w := worldWith(pod)
	w.pool.Spec.Backends.OnCordon, w.nodes = v1alpha1.CordonMove, nodesKnown
	if got := decide(w, noon).berths[0].drain; got.reason != v1alpha1.ReasonDrainAnnotation || got.mode != router.DrainKeep {
		t.Errorf("drained for %s as %s, want as its annotation says", got.reason, got.mode)
	}
}

func TestADrainOfTheSpecIsNotTakenForThatOfANodeWhileNodesAreAwaited(t *testing.T) {
	pod := running("a")
	pod.node = "n"
	w := worldWith(pod)
	w.pool.Spec.Backends.OnCordon, w.nodes = v1alpha1.CordonMove, nodesAwaited
	w.pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "a", Sessions: v1alpha1.DrainKeep}}
	began := metav1.NewTime(noon.Add(-time.Minute))
	w.pool.Status.Backends = []v1alpha1.BackendStatus{{Name: "a", Incarnation: string(pod.incarnation), DrainStartTime: &began}}
	if got := decide(w, noon).berths[0].drain; got.mode != router.DrainKeep || !got.start.Equal(began.Time) {
		t.Errorf("drained as %s since %v, want its sessions kept, since %v", got.mode, got.start, began)
	}
}

func TestAPoolLooksAgainWhileNodesAreAwaited(t *testing.T) {
	w := worldWith(running("a"))
	w.nodes = nodesAwaited
	if got := decide(w, noon).deadline; !got.Equal(noon.Add(nodesPause)) {
		t.Errorf("looks again at %v, want %v", got, noon.Add(nodesPause))
	}
}

// sightings of nodes, with pods on those in use.
func cordonsOf(inUse ...string) (*cordons, *[]string) {
	var nudged []string
	c := newCordons(nil, nil)
	c.used = func(node string) bool { return slices.Contains(inUse, node) }
	c.nudge = func(node string) { nudged = append(nudged, node) }
	return c, &nudged
}

func nodeNamed(name string, unschedulable bool) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: unschedulable}}
}

func TestCordonsAreToldOfOnceForEachChange(t *testing.T) {
	c, nudged := cordonsOf()
	for _, unschedulable := range []bool{false, true, true, false, false} {
		c.saw(nodeNamed("n", unschedulable))
		if c.on("n") != unschedulable {
			t.Errorf("cordoned is %t, want %t", c.on("n"), unschedulable)
		}
	}
	if want := []string{"n", "n"}; !slices.Equal(*nudged, want) {
		t.Errorf("nudged for %v, want one for each change, %v", *nudged, want)
	}
}

func TestADeletedNodeCountsAsCordonedWhileItsPodsAreThere(t *testing.T) {
	c, nudged := cordonsOf("busy")
	for _, name := range []string{"busy", "idle"} {
		c.saw(nodeNamed(name, name == "idle"))
	}
	*nudged = nil
	c.lost(toolscache.DeletedFinalStateUnknown{Key: "busy"})
	c.lost(nodeNamed("idle", true))
	if !c.on("busy") || c.on("idle") {
		t.Errorf("cordoned: busy %t, idle %t; want the one with pods alone", c.on("busy"), c.on("idle"))
	}
	if want := []string{"busy"}; !slices.Equal(*nudged, want) {
		t.Errorf("nudged for %v, want %v", *nudged, want)
	}
	c.used = func(string) bool { return false }
	c.lost(nodeNamed("another", false))
	if len(c.cordoned) != 0 {
		t.Errorf("remembers %v though no pod is on any of them", c.cordoned)
	}
}

func TestTrimNodeKeepsWhatIsRead(t *testing.T) {
	node := nodeNamed("n", true)
	node.Status.NodeInfo.KernelVersion = "large"
	trimmed, err := TrimNode(node)
	if err != nil {
		t.Fatal(err)
	}
	got := trimmed.(*corev1.Node)
	if got.Name != "n" || !got.Spec.Unschedulable || got.Status.NodeInfo.KernelVersion != "" {
		t.Errorf("kept %+v", got)
	}
}
