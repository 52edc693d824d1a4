package controller_test

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// recipe is the manifest in docs/drains.md, object by object.
type recipe struct {
	account corev1.ServiceAccount
	role    rbacv1.Role
	binding rbacv1.RoleBinding
	pod     corev1.Pod
}

func readRecipe() *recipe {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "drains.md"))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	Expect(found).To(BeTrue())
	text, _, found := strings.Cut(rest, "```\n")
	Expect(found).To(BeTrue())
	parts := strings.Split(text, "---\n")
	r := &recipe{}
	objects := []any{&r.account, &r.role, &r.binding, &r.pod}
	Expect(parts).To(HaveLen(len(objects)))
	for i, object := range objects {
		Expect(yaml.UnmarshalStrict([]byte(parts[i]), object)).To(Succeed())
	}
	return r
}

// install makes what the recipe asks for, but for the pod, and a folder as the kubelet mounts it.
func (r *recipe) install(ctx context.Context, h *house) (folder string) {
	GinkgoHelper()
	for _, object := range []client.Object{&r.account, &r.role, &r.binding} {
		object.SetNamespace(h.namespace)
	}
	r.binding.Subjects[0].Namespace = h.namespace
	for _, object := range []client.Object{&r.account, &r.role, &r.binding} {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	token := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, &r.account, token)).To(Succeed())
	folder = GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(folder, "token"), []byte(token.Status.Token), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(folder, "ca.crt"), cluster.Config.CAData, 0o600)).To(Succeed())
	return folder
}

// run starts the hook as the kubelet does, in a pod of that UID, and delivers how it ended.
func (r *recipe) run(ctx context.Context, h *house, folder, uid string, changes ...string) <-chan error {
	GinkgoHelper()
	hook := r.pod.Spec.Containers[0].Lifecycle.PreStop.Exec.Command
	at, err := url.Parse(cluster.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	host, port, err := net.SplitHostPort(at.Host)
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, hook[0], hook[1:]...)
	command.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port,
		"POD_NAMESPACE="+h.namespace, "POD_UID="+uid, "SERVICE_ACCOUNT="+folder)
	for _, variable := range r.pod.Spec.Containers[0].Env {
		if variable.ValueFrom == nil {
			command.Env = append(command.Env, variable.Name+"="+variable.Value)
		}
	}
	command.Env = append(command.Env, changes...)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	ended := make(chan error, 1)
	Expect(command.Start()).To(Succeed())
	go func() { ended <- command.Wait() }()
	return ended
}

var _ = Describe("the preStop recipe of the documentation", func() {
	BeforeEach(func() {
		if output, err := exec.Command("python3", "--version").CombinedOutput(); err != nil || !bytes.HasPrefix(output, []byte("Python 3")) {
			Skip("there is no python3")
		}
	})

	It("ends once the router counts nothing on the pod, and not before", func(ctx context.Context) {
		r := readRecipe()
		h := openHouse(ctx)
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		folder := r.install(ctx, h)
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		pod := f.pod(ctx, name)

		before := pod.DeepCopy()
		pod.Finalizers = []string{"example.com/kubelet"} // as if its containers were still ending
		Expect(admin.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		ended := r.run(ctx, h, folder, string(pod.UID))
		h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonPodDeleted)
		Consistently(ended).WithTimeout(4*time.Second).ShouldNot(Receive(), "an execution is counted there")

		h.release(grant, router.Succeeded)
		h.untilBackend(ctx, name, v1alpha1.BackendDrained, v1alpha1.ReasonPodDeleted)
		Eventually(ended).Should(Receive(BeNil()))
		before = f.pod(ctx, name)
		pod = before.DeepCopy()
		pod.Finalizers = nil
		Expect(admin.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
	})

	It("gives up in time to leave the engine some of the grace period", func(ctx context.Context) {
		r := readRecipe()
		grace := *r.pod.Spec.TerminationGracePeriodSeconds
		Expect(r.pod.Spec.Containers[0].Env).To(ContainElement(And(HaveField("Name", "DRAIN_SECONDS"), HaveField("Value", "1740"))))
		Expect(grace).To(BeNumerically(">", 1740))
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		folder := r.install(ctx, h)
		ended := r.run(ctx, h, folder, string(f.pod(ctx, "sglang-0").UID), "DRAIN_SECONDS=1")
		Eventually(ended).Should(Receive(MatchError("exit status 1")), "the backend serves: it is not drained")
	})

	It("does not wait for a pool that is not there, and does for one that it cannot ask for", func(ctx context.Context) {
		r := readRecipe()
		h := openHouse(ctx)
		folder := r.install(ctx, h)
		Eventually(r.run(ctx, h, folder, "uid")).Should(Receive(BeNil()))
		Expect(os.WriteFile(filepath.Join(folder, "token"), []byte("of-nobody"), 0o600)).To(Succeed())
		Eventually(r.run(ctx, h, folder, "uid", "DRAIN_SECONDS=1")).Should(Receive(MatchError("exit status 1")))
	})
})
