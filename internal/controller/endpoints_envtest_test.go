package controller_test

import (
	"context"
	"net"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// startEndpoint serves an engine on an address of the fleet and returns its base URL.
func startEndpoint(ctx context.Context, i int) v1alpha1.EndpointURL {
	GinkgoHelper()
	at := net.JoinHostPort(address(i), strconv.Itoa(int(freePort(ctx))))
	startEngine(at)
	return v1alpha1.EndpointURL("http://" + at)
}

var _ = Describe("a pool over endpoints", func() {
	It("gives each a life that lasts as long as its URL", func(ctx context.Context) {
		h := openHouse(ctx)
		first, second := startEndpoint(ctx, 0), startEndpoint(ctx, 1)
		h.createPool(ctx, v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: first + "//"}, {Name: "b", URL: second}}})
		status := h.untilServing(ctx, 2)
		Expect(status.Lives).To(BeEquivalentTo(2))
		entry := h.untilBackend(ctx, "a", v1alpha1.BackendServing, "")
		Expect(entry.Incarnation).To(Equal("endpoint:a/1"))
		Expect(entry.URL).To(BeEquivalentTo(first))

		moved := startEndpoint(ctx, 2)
		setURL := func(url v1alpha1.EndpointURL) func(*v1alpha1.InferencePoolSpec) {
			return func(s *v1alpha1.InferencePoolSpec) { s.Backends.Endpoints[0].URL = url }
		}
		h.changePool(ctx, setURL(moved))
		h.until(ctx, "the third life to serve", serving("endpoint:a/3"))
		h.changePool(ctx, setURL(first)) // back again is another life: the old one may not have ended
		h.until(ctx, "the fourth life to serve", serving("endpoint:a/4"))

		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		h.until(ctx, "the lives of before to serve", serving("endpoint:a/4"))
		Expect(h.pool(ctx).Status.Lives).To(BeEquivalentTo(4))
	})

	It("begins the next life when a person vouches that one has ended", func(ctx context.Context) {
		h := openHouse(ctx)
		h.createPool(ctx, v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: startEndpoint(ctx, 0)}}})
		h.untilServing(ctx, 1)
		grant := h.acquire(request("s", 1))
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.ConfirmedGone = []v1alpha1.Incarnation{"endpoint:a/1"} })
		h.until(ctx, "the second life to serve", serving("endpoint:a/2"))
		ending, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(ending.Fate).To(Equal(router.FateDead))
	})

	It("keeps counting on an endpoint that leaves the spec", func(ctx context.Context) {
		h := openHouse(ctx)
		first, second := startEndpoint(ctx, 0), startEndpoint(ctx, 1)
		h.createPool(ctx, v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: first}, {Name: "b", URL: second}}})
		h.untilServing(ctx, 2)
		grant := h.acquire(request("s", 1))
		leaver := string(grant.Claim.Backend)
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			kept := s.Backends.Endpoints[:0]
			for _, endpoint := range s.Backends.Endpoints {
				if endpoint.Name != leaver {
					kept = append(kept, endpoint)
				}
			}
			s.Backends.Endpoints = kept
		})
		h.untilBackend(ctx, leaver, v1alpha1.BackendRetired, v1alpha1.ReasonNotSelected)
		Expect(h.outstanding(grant.Claim.Incarnation)).To(BeEquivalentTo(1))
		h.release(grant, router.Succeeded)
		h.until(ctx, "one backend", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 1 })
	})
})

// serving holds when an incarnation serves.
func serving(incarnation string) func(*v1alpha1.InferencePoolStatus) bool {
	return func(s *v1alpha1.InferencePoolStatus) bool {
		for _, entry := range s.Backends {
			if entry.Incarnation == incarnation && entry.State == v1alpha1.BackendServing {
				return true
			}
		}
		return false
	}
}
