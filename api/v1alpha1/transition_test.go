package v1alpha1_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a changed pool", func() {
	// change creates a pool, applies the edits to it and returns what the API server says.
	change := func(ctx context.Context, before []edit, edits ...edit) error {
		GinkgoHelper()
		manifest := pool(before...)
		Expect(api.Create(ctx, manifest)).To(Succeed())
		DeferCleanup(api.Delete, manifest)
		for _, change := range edits {
			change(manifest.Object)
		}
		return api.Update(ctx, manifest)
	}
	const (
		epochFell     = "spec.epoch may only grow"
		senderRemoved = "spec.senders: an existing sender may not be removed"
		lowered       = "spec.senders: the minGeneration of an existing sender may be neither unset nor lowered"
	)
	epoch := func(n int64) []edit { return []edit{set("spec.epoch", n)} }
	senders := func(entries ...any) []edit { return []edit{set("spec.senders", entries)} }

	DescribeTable("is accepted",
		func(ctx context.Context, before, after []edit) {
			Expect(change(ctx, before, after...)).To(Succeed())
		},
		Entry("when the epoch grows", epoch(3), epoch(4)),
		Entry("when the epoch is unset from 1", epoch(1), []edit{unset("spec.epoch")}),
		Entry("when the epoch is first set", nil, epoch(2)),
		Entry("when a sender is added", senders(sender("a")), senders(sender("b"), sender("a"))),
		Entry("when a sender is fenced", senders(sender("a")), senders(sender("a", "access", "Fenced"))),
		Entry("when minGeneration is first set", senders(sender("a")), senders(sender("a", "minGeneration", int64(1)))),
		Entry("when minGeneration grows", senders(sender("a", "minGeneration", int64(1))), senders(sender("a", "minGeneration", int64(2)))),
		Entry("when a version is first set", nil, []edit{weights("version", "1")}),
		Entry("when another version is set", []edit{weights("version", "1")}, []edit{weights("version", "2")}),
		Entry("when the epoch grows and the version stays", []edit{weights("version", "1")}, []edit{set("spec.epoch", int64(2))}),
		Entry("when a version is set in the new epoch", []edit{weights("version", "1")},
			[]edit{set("spec.epoch", int64(2)), weights("version", "2", "epoch", int64(2))}),
		Entry("when the backends change kind", nil, []edit{endpoints("http://b")}),
	)

	DescribeTable("is refused",
		func(ctx context.Context, message string, before, after []edit) {
			Expect(change(ctx, before, after...)).To(MatchError(ContainSubstring(message)))
		},
		Entry("when a writer of an older epoch sets a version", "the writer is of an older epoch",
			[]edit{set("spec.epoch", int64(2)), weights("version", "57", "epoch", int64(2))}, []edit{weights("version", "1", "epoch", int64(1))}),
		Entry("when a writer that knows no epoch sets a version in a later one", "the writer is of an older epoch",
			[]edit{weights("version", "57")}, []edit{set("spec.epoch", int64(2)), weights("version", "1")}),
		Entry("when the epoch of the weights is lowered", "spec.weights.epoch may be neither unset nor lowered",
			[]edit{set("spec.epoch", int64(2)), weights("version", "57", "epoch", int64(2))}, []edit{weights("version", "57", "epoch", int64(1))}),
		Entry("when the epoch of the weights is unset", "spec.weights.epoch may be neither unset nor lowered",
			[]edit{set("spec.epoch", int64(2)), weights("version", "57", "epoch", int64(2))}, []edit{weights("version", "57")}),
		Entry("when the weights are unset", "spec.weights may not be unset", []edit{weights("version", "57")}, []edit{unset("spec.weights")}),
		Entry("when the epoch falls", epochFell, epoch(3), epoch(2)),
		Entry("when the epoch is unset", epochFell, epoch(3), []edit{unset("spec.epoch")}),
		Entry("when a sender is removed", senderRemoved, senders(sender("a"), sender("b")), senders(sender("b"))),
		Entry("when a sender is renamed", senderRemoved, senders(sender("a")), senders(sender("b"))),
		Entry("when minGeneration is lowered", lowered,
			senders(sender("a", "minGeneration", int64(2))), senders(sender("a", "minGeneration", int64(1)))),
		Entry("when minGeneration is unset", lowered, senders(sender("a", "minGeneration", int64(2))), senders(sender("a"))),
		Entry("when minGeneration is unset from 0", lowered, senders(sender("a", "minGeneration", int64(0))), senders(sender("a"))),
	)

	It("cannot get round a rule by way of removal and re-adding", func(ctx context.Context) {
		manifest := pool(set("spec.epoch", int64(3)), set("spec.senders", list(sender("a", "minGeneration", int64(2)), sender("b"))))
		Expect(api.Create(ctx, manifest)).To(Succeed())
		DeferCleanup(api.Delete, manifest)

		for _, removal := range []string{
			`[{"op":"remove","path":"/spec/senders/0"}]`,
			`[{"op":"remove","path":"/spec/senders"}]`,
			`[{"op":"remove","path":"/spec/senders/0/minGeneration"}]`,
			`[{"op":"remove","path":"/spec/epoch"}]`,
			`[{"op":"remove","path":"/spec"}]`,
		} {
			err := api.Patch(ctx, manifest.DeepCopy(), client.RawPatch("application/json-patch+json", []byte(removal)))
			Expect(err).To(MatchError(ContainSubstring("spec")), removal)
		}
	})

	It("lets one owner change one sender by server-side apply of that entry", func(ctx context.Context) {
		manifest := pool(unset("metadata.generateName"), set("metadata.name", "one-entry"),
			set("spec.senders", list(sender("train"), sender("eval"))))
		Expect(api.Create(ctx, manifest)).To(Succeed())
		DeferCleanup(api.Delete, manifest)

		entry := pool(unset("spec"), unset("metadata.generateName"), set("metadata.name", "one-entry"),
			set("spec.senders", list(sender("eval", "access", "Fenced"))))
		Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(entry), client.FieldOwner("evaluation"))).To(Succeed())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(manifest), manifest)).To(Succeed())
		Expect(manifest.Object).To(HaveKeyWithValue("spec",
			HaveKeyWithValue("senders", ConsistOf(sender("train"), sender("eval", "access", "Fenced")))))
	})
})
