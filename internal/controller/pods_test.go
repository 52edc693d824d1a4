package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// podInLife is a ready pod whose one container is in the life of that ID.
func podInLife(id string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Ports: []corev1.ContainerPort{{ContainerPort: 30000}}}}},
		Status: corev1.PodStatus{
			PodIP:             "10.0.0.7",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "server", ContainerID: id}},
		},
	}
}

func terminated(id string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}
}

func TestSightPod(t *testing.T) {
	spec := &v1alpha1.BackendsSpec{Port: 30000}
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		process  process
		unusable v1alpha1.BackendReason
		life     router.Incarnation
	}{
		"ready":                         {func(*corev1.Pod) {}, processLives, "", "uid/c1"},
		"not started":                   {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, processAwaited, v1alpha1.ReasonStarting, ""},
		"without an address":            {func(p *corev1.Pod) { p.Status.PodIP = "" }, processLives, v1alpha1.ReasonStarting, "uid/c1"},
		"not ready":                     {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, processLives, v1alpha1.ReasonPodNotReady, "uid/c1"},
		"without a word of readiness":   {func(p *corev1.Pod) { p.Status.Conditions = nil }, processLives, v1alpha1.ReasonPodNotReady, "uid/c1"},
		"ended":                         {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = terminated("c1") }, processEnded, v1alpha1.ReasonStarting, "uid/c1"},
		"ended and waiting for another": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].LastTerminationState = terminated("c1") }, processEnded, v1alpha1.ReasonStarting, "uid/c1"},
		"restarted":                     {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].LastTerminationState = terminated("c0") }, processLives, "", "uid/c1"},
		"lost from sight without an ID": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = terminated("") }, processLives, "", "uid/c1"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podInLife("c1")
			c.change(pod)
			got := sightPod(pod, spec)
			if got.process != c.process || got.unusable != c.unusable || got.incarnation != c.life {
				t.Errorf("process %d, unusable %q, life %q; want %d, %q, %q", got.process, got.unusable, got.incarnation, c.process, c.unusable, c.life)
			}
		})
	}
}

func TestEngineContainerIsTheNamedOneElseTheOneWithThePortElseTheOnly(t *testing.T) {
	container := func(name string, ports ...int32) corev1.Container {
		c := corev1.Container{Name: name}
		for _, port := range ports {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port})
		}
		return c
	}
	for name, c := range map[string]struct {
		containers []corev1.Container
		spec       v1alpha1.BackendsSpec
		want       string
		found      bool
	}{
		"named":                 {[]corev1.Container{container("x", 30000), container("y")}, v1alpha1.BackendsSpec{Port: 30000, Container: "y"}, "y", true},
		"named and not there":   {[]corev1.Container{container("x", 30000)}, v1alpha1.BackendsSpec{Port: 30000, Container: "y"}, "", false},
		"by its port":           {[]corev1.Container{container("x"), container("y", 1, 30000)}, v1alpha1.BackendsSpec{Port: 30000}, "y", true},
		"the only one":          {[]corev1.Container{container("x")}, v1alpha1.BackendsSpec{Port: 30000}, "x", true},
		"cannot be told":        {[]corev1.Container{container("x"), container("y")}, v1alpha1.BackendsSpec{Port: 30000}, "", false},
		"the only, other ports": {[]corev1.Container{container("x", 80)}, v1alpha1.BackendsSpec{Port: 30000}, "x", true},
	} {
		got, found := engineContainer(&corev1.Pod{Spec: corev1.PodSpec{Containers: c.containers}}, &c.spec)
		if got != c.want || found != c.found {
			t.Errorf("%s: %q, %t; want %q, %t", name, got, found, c.want, c.found)
		}
	}
}

func TestSupersededLivesNeedALaterIDForTheSameContainerOfTheSamePod(t *testing.T) {
	otherUID := podInLife("c2")
	otherUID.UID = "another"
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          []router.Incarnation
	}{
		"a later ID":            {podInLife("c1"), podInLife("c2"), []router.Incarnation{"uid/c1"}},
		"the same ID":           {podInLife("c1"), podInLife("c1"), nil},
		"no ID any more":        {podInLife("c1"), podInLife(""), nil},
		"no ID before":          {podInLife(""), podInLife("c2"), nil},
		"a new pod of the name": {podInLife("c1"), otherUID, nil},
	} {
		if diff := cmp.Diff(c.want, supersededLives(c.before, c.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFateInAPodNeedsAProofForAnEnd(t *testing.T) {
	two := podInLife("c2")
	two.Status.ContainerStatuses = append(two.Status.ContainerStatuses, corev1.ContainerStatus{Name: "sidecar"})
	ended := podInLife("c2")
	ended.Status.ContainerStatuses[0].LastTerminationState = terminated("c1")
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		uid  string
		want fate
	}{
		"a pod of another UID":                             {podInLife("c1"), "other", fateMissing},
		"it is the current life":                           {podInLife("c1"), "uid", fateUnselected},
		"it is reported terminated":                        {ended, "uid", fateEnded},
		"every container has another life":                 {podInLife("c2"), "uid", fateEnded},
		"it may be of the container that shows no life":    {two, "uid", fateUnselected},
		"it may be of the one container, which shows none": {podInLife(""), "uid", fateUnselected},
	} {
		pod := c.pod
		if got := fateIn(pod, "uid", "uid/c1"); c.uid == "uid" && got != c.want {
			t.Errorf("%s: fate %d, want %d", name, got, c.want)
		}
		if got := fateIn(pod, "other", "other/c1"); c.uid == "other" && got != c.want {
			t.Errorf("%s: fate %d, want %d", name, got, c.want)
		}
	}
}

func TestCapacityAnnotationIsAWholeNumberOrKeepsThePodOut(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "64": 64, "1000000": 1_000_000} {
		pod := podInLife("c1")
		pod.Annotations = map[string]string{v1alpha1.AnnotationCapacity: text}
		if got := sightPod(pod, &v1alpha1.BackendsSpec{Port: 30000}); got.capacity != want || got.unusable != "" {
			t.Errorf("%q: capacity %d, unusable %q", text, got.capacity, got.unusable)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "many", "1000001", "99999999999999999999"} {
		pod := podInLife("c1")
		pod.Annotations = map[string]string{v1alpha1.AnnotationCapacity: text}
		if got := sightPod(pod, &v1alpha1.BackendsSpec{Port: 30000}); got.unusable != v1alpha1.ReasonInvalidCapacityAnnotation {
			t.Errorf("%q: unusable %q, want InvalidCapacityAnnotation", text, got.unusable)
		}
	}
}

func TestPodURLBracketsIPv6(t *testing.T) {
	pod := podInLife("c1")
	pod.Status.PodIP = "fd00::7"
	if got, want := sightPod(pod, &v1alpha1.BackendsSpec{Port: 30000}).url, "http://[fd00::7]:30000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTrimPodKeepsAllThatIsRead(t *testing.T) {
	pod := podInLife("c1")
	now := metav1.NewTime(noon)
	pod.Labels, pod.DeletionTimestamp = map[string]string{"app": "sglang"}, &now
	pod.Annotations = map[string]string{v1alpha1.AnnotationCapacity: "7", v1alpha1.AnnotationDrain: "Keep", "other": "x"}
	pod.Status.ContainerStatuses[0].LastTerminationState = terminated("c0")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET", Value: "x"}}
	object, err := TrimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := object.(*corev1.Pod)
	spec := &v1alpha1.BackendsSpec{Port: 30000}
	opts := cmp.AllowUnexported(sighting{}, drainCause{})
	if diff := cmp.Diff(sightPod(pod, spec), sightPod(trimmed, spec), opts); diff != "" {
		t.Errorf("a trimmed pod looks otherwise (-whole +trimmed):\n%s", diff)
	}
	if diff := cmp.Diff(endedLives(pod), endedLives(trimmed)); diff != "" {
		t.Errorf("ended lives (-whole +trimmed):\n%s", diff)
	}
	if diff := cmp.Diff(pod.Labels, trimmed.Labels); diff != "" {
		t.Errorf("labels (-whole +trimmed):\n%s", diff)
	}
	if len(trimmed.Spec.Containers[0].Env) != 0 || trimmed.Annotations["other"] != "" {
		t.Error("environment and annotations of others are kept")
	}
	if other, err := TrimPod("not a pod"); err != nil || other != "not a pod" {
		t.Errorf("what is no pod became %v, %v", other, err)
	}
}
