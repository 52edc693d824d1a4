package v1alpha1_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subjects gives the pool's one sender these subjects.
func subjects(entries ...any) edit {
	return set("spec.senders", list(sender("train", "subjects", entries)))
}

// users are that many users.
func users(n int) []any {
	return repeated(n, func(i int) any { return object("kind", "User", "name", fmt.Sprint("u", i)) })
}

var _ = Describe("the subjects of a sender", func() {
	DescribeTable("are accepted",
		func(ctx context.Context, entries ...any) {
			Expect(api.Create(ctx, pool(subjects(entries...)), client.DryRunAll)).To(Succeed())
		},
		Entry("if there are none"),
		Entry("as a service account of the pool's namespace", object("kind", "ServiceAccount", "name", "trainer")),
		Entry("as a service account of another namespace", object("kind", "ServiceAccount", "name", "trainer", "namespace", "rl")),
		Entry("as a group", object("kind", "Group", "name", "system:serviceaccounts:rl")),
		Entry("as a user", object("kind", "User", "name", "ann@example.com")),
		Entry("up to 64 of them", users(64)...),
	)

	DescribeTable("are refused with a message that names the field",
		func(ctx context.Context, message string, entries ...any) {
			err := api.Create(ctx, pool(subjects(entries...)), client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("without a kind", "subjects[0].kind", object("name", "trainer")),
		Entry("with another kind", "subjects[0].kind", object("kind", "Role", "name", "trainer")),
		Entry("without a name", "subjects[0].name", object("kind", "User")),
		Entry("with an empty name", "subjects[0].name", object("kind", "User", "name", "")),
		Entry("as a group with a namespace", "spec.senders.subjects.namespace belongs to a ServiceAccount only",
			object("kind", "Group", "name", "g", "namespace", "rl")),
		Entry("in an ill-formed namespace", "subjects[0].namespace",
			object("kind", "ServiceAccount", "name", "trainer", "namespace", "RL")),
		Entry("if there are 65", append([]any{"spec.senders[0].subjects"}, users(65)...)...),
	)
})
