package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// generate posts a long generation under a lease and delivers how the engine says that it ended:
// stop, length or abort; or "cut" if the connection broke.
func generate(ctx context.Context, grant router.Grant) <-chan string {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{
		"rid": string(grant.Claim.RID), "input_ids": []int{1, 2, 3},
		"sampling_params": map[string]any{"max_new_tokens": 30000, "ignore_eos": true},
	})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan string, 1)
	go func() { ended <- post(ctx, grant.URL+"/generate", body) }()
	return ended
}

func post(ctx context.Context, url string, body []byte) string {
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	reply, err := http.DefaultClient.Do(call)
	if err != nil {
		return "cut"
	}
	defer reply.Body.Close()
	var answer struct {
		Meta struct {
			Finish struct {
				Type string `json:"type"`
			} `json:"finish_reason"`
		} `json:"meta_info"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil {
		return "cut"
	}
	return answer.Meta.Finish.Type
}

// applyDrain is a server-side apply of just these entries of spec.drain, under an owner of its own.
func (h *house) applyDrain(ctx context.Context, owner string, names ...string) {
	GinkgoHelper()
	entries := []any{}
	for _, name := range names {
		entries = append(entries, map[string]any{"backend": name})
	}
	patch := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"drain": entries}}}
	patch.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.InferencePoolKind))
	patch.SetNamespace(h.namespace)
	patch.SetName(theName)
	Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(owner))).To(Succeed())
}
