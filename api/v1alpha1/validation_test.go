package v1alpha1_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a new pool", func() {
	DescribeTable("is accepted",
		func(ctx context.Context, edits ...edit) {
			Expect(api.Create(ctx, pool(edits...), client.DryRunAll)).To(Succeed())
		},
		Entry("with a selector, a port and one sender"),
		Entry("with one endpoint", endpoints("http://10.0.0.7:30000")),
		Entry("with URLs of every allowed form",
			endpoints("http://b", "http://b/", "http://b//", "https://b.example.com:443/", "http://[::1]:3000/", "http://b:65535")),
		Entry("with a fixed capacity", set("spec.backends.capacity", object("source", "Fixed", "value", int64(64)))),
		Entry("with a fallback capacity", set("spec.backends.capacity", object("source", "Engine", "fallback", int64(64)))),
		Entry("with a fallback capacity and no source", set("spec.backends.capacity", object("fallback", int64(64)))),
		Entry("with match expressions only", set("spec.backends.selector", object("matchExpressions", list(
			object("key", "example.com/role", "operator", "In", "values", list("rollout")),
			object("key", "app", "operator", "Exists"))))),
		Entry("with the name of a secret", set("spec.backends.credentialsSecretRef", object("name", "sglang.keys-1"))),
		Entry("with leasing held", set("spec.leasing", "Held")),
		Entry("with leasing open", set("spec.leasing", "Open")),
		Entry("with policy LeastSessions", set("spec.routing.policy", "LeastSessions")),
		Entry("with policy RoundRobin", set("spec.routing.policy", "RoundRobin")),
		Entry("with policy ConsistentHash", set("spec.routing.policy", "ConsistentHash")),
		Entry("with policy LeastOutstanding", set("spec.routing.policy", "LeastOutstanding")),
		Entry("with mode Sticky", set("spec.routing.affinity.mode", "Sticky")),
		Entry("with mode Rebalance and no numbers", set("spec.routing.affinity.mode", "Rebalance")),
		Entry("with every certainty from the strict one", set("spec.leases", object("certaintySeconds", int64(0)))),
		Entry("with a certainty just above startSeconds", set("spec.leases", object("certaintySeconds", int64(31)))),
		Entry("with startSeconds equal to ttlSeconds", set("spec.leases", object("ttlSeconds", int64(30)))),
		Entry("with a drain and a deadline", set("spec.drain", list(
			object("backend", "sglang-3", "deadlineSeconds", int64(600), "onDeadline", "Abort", "sessions", "Keep")))),
		Entry("with a drain of a pod whose name has dots", set("spec.drain", list(object("backend", "a.b-0")))),
		Entry("with an incarnation confirmed gone", set("spec.confirmedGone", list("6b0e/containerd://0f"))),
		Entry("with 32 senders", set("spec.senders", repeated(32, func(i int) any { return sender(fmt.Sprintf("s%d", i)) }))),
		Entry("with a generation of 0", set("spec.senders", list(sender("train", "minGeneration", int64(0))))),
	)

	DescribeTable("is refused with a message that names the field",
		func(ctx context.Context, message string, edits ...edit) {
			err := api.Create(ctx, pool(edits...), client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("without backends", "spec.backends", unset("spec.backends")),
		Entry("with both selector and endpoints", "spec.backends: exactly one of selector and endpoints must be set",
			set("spec.backends.endpoints", list(object("name", "a", "url", "http://b")))),
		Entry("with neither selector nor endpoints", "spec.backends: exactly one of selector and endpoints must be set",
			set("spec.backends", object())),
		Entry("with a selector and no port", "spec.backends.port must be set with selector", unset("spec.backends.port")),
		Entry("with endpoints and a port", "spec.backends.port may be set with selector only",
			endpoints("http://b"), set("spec.backends.port", int64(1))),
		Entry("with endpoints and a container", "spec.backends.container may be set with selector only",
			endpoints("http://b"), set("spec.backends.container", "server")),
		Entry("with no endpoint in the list", "spec.backends.endpoints", endpoints()),
		Entry("with two endpoints of one name", "spec.backends.endpoints", endpoints(),
			set("spec.backends.endpoints", list(object("name", "a", "url", "http://b"), object("name", "a", "url", "http://c")))),
		Entry("with an endpoint without a name", "spec.backends.endpoints[0].name",
			set("spec.backends", object("endpoints", list(object("url", "http://b"))))),
		Entry("with an endpoint without a URL", "spec.backends.endpoints[0].url",
			set("spec.backends", object("endpoints", list(object("name", "a"))))),
		Entry("with an ill-formed endpoint name", "spec.backends.endpoints[0].name",
			set("spec.backends", object("endpoints", list(object("name", "A_", "url", "http://b"))))),
		Entry("with an empty selector", "spec.backends.selector: at least one of matchLabels and matchExpressions",
			set("spec.backends.selector", object())),
		Entry("with empty matchLabels", "spec.backends.selector: at least one of matchLabels and matchExpressions",
			set("spec.backends.selector", object("matchLabels", object()))),
		Entry("with an ill-formed label name", "spec.backends.selector.matchLabels: a key is not a valid label name",
			set("spec.backends.selector.matchLabels", object("a b", "c"))),
		Entry("with an ill-formed label value", "spec.backends.selector.matchLabels",
			set("spec.backends.selector.matchLabels", object("app", "-"))),
		Entry("with an ill-formed key in an expression", "matchExpressions: key is not a valid label name",
			set("spec.backends.selector", object("matchExpressions", list(object("key", "a b", "operator", "Exists"))))),
		Entry("with an unknown operator in an expression", "spec.backends.selector.matchExpressions[0].operator",
			set("spec.backends.selector", object("matchExpressions", list(object("key", "a", "operator", "Like"))))),
		Entry("with operator In and no values", "matchExpressions: values must be set with operator In or NotIn, and only then",
			set("spec.backends.selector", object("matchExpressions", list(object("key", "a", "operator", "In"))))),
		Entry("with operator Exists and values", "matchExpressions: values must be set with operator In or NotIn, and only then",
			set("spec.backends.selector", object("matchExpressions", list(
				object("key", "a", "operator", "Exists", "values", list("b")))))),
		Entry("with an ill-formed container", "spec.backends.container", set("spec.backends.container", "Server")),
		Entry("with capacity 0", "spec.backends.capacity.value",
			set("spec.backends.capacity", object("source", "Fixed", "value", int64(0)))),
		Entry("with a fallback capacity of 0", "spec.backends.capacity.fallback",
			set("spec.backends.capacity", object("fallback", int64(0)))),
		Entry("with source Fixed and no value", "spec.backends.capacity.value must be set with source Fixed, and only then",
			set("spec.backends.capacity", object("source", "Fixed"))),
		Entry("with source Engine and a value", "spec.backends.capacity.value must be set with source Fixed, and only then",
			set("spec.backends.capacity", object("source", "Engine", "value", int64(1)))),
		Entry("with a value and no source", "spec.backends.capacity.value must be set with source Fixed, and only then",
			set("spec.backends.capacity", object("value", int64(1)))),
		Entry("with source Fixed and a fallback", "spec.backends.capacity.fallback may be set with source Engine only",
			set("spec.backends.capacity", object("source", "Fixed", "value", int64(1), "fallback", int64(1)))),
		Entry("with an unknown capacity source", "spec.backends.capacity.source",
			set("spec.backends.capacity", object("source", "Guess"))),
		Entry("with leasing neither open nor held", "spec.leasing", set("spec.leasing", "Shut")),
		Entry("with an unknown affinity mode", "spec.routing.affinity.mode",
			set("spec.routing.affinity", object("mode", "Eager"))),
		Entry("with rules of moving and no mode", "spec.routing.affinity.rebalance may be set with mode Rebalance only",
			set("spec.routing.affinity", object("rebalance", object("marginPercent", int64(20))))),
		Entry("with rules of moving and mode Sticky", "spec.routing.affinity.rebalance may be set with mode Rebalance only",
			set("spec.routing.affinity", object("mode", "Sticky", "rebalance", object()))),
		Entry("with a secret without a name", "spec.backends.credentialsSecretRef.name",
			set("spec.backends.credentialsSecretRef", object())),
		Entry("with an empty name of a secret", "spec.backends.credentialsSecretRef.name",
			set("spec.backends.credentialsSecretRef", object("name", ""))),
		Entry("with an ill-formed name of a secret", "spec.backends.credentialsSecretRef.name",
			set("spec.backends.credentialsSecretRef", object("name", "Keys/a"))),
		Entry("with a secret's name of 254 characters", "spec.backends.credentialsSecretRef.name",
			set("spec.backends.credentialsSecretRef", object("name", strings.Repeat("a", 254)))),
		Entry("with an unknown policy", "spec.routing.policy", set("spec.routing", object("policy", "Random"))),
		Entry("with startSeconds above ttlSeconds", "spec.leases.startSeconds (empty: 30) may not be above ttlSeconds",
			set("spec.leases", object("startSeconds", int64(40), "ttlSeconds", int64(39)))),
		Entry("with ttlSeconds below the default of startSeconds", "spec.leases.startSeconds (empty: 30) may not be above ttlSeconds",
			set("spec.leases", object("ttlSeconds", int64(29)))),
		Entry("with startSeconds above the default of ttlSeconds", "spec.leases.startSeconds (empty: 30) may not be above ttlSeconds",
			set("spec.leases", object("startSeconds", int64(121), "certaintySeconds", int64(0)))),
		Entry("with a certainty of startSeconds", "spec.leases.certaintySeconds (empty: 60) must be 0 or above startSeconds",
			set("spec.leases", object("certaintySeconds", int64(30)))),
		Entry("with startSeconds at the default certainty", "spec.leases.certaintySeconds (empty: 60) must be 0 or above startSeconds",
			set("spec.leases", object("startSeconds", int64(60)))),
		Entry("with an unknown action on ambiguity", "spec.leases.onAmbiguous",
			set("spec.leases", object("onAmbiguous", "Ignore"))),
		Entry("with an action but no deadline of a drain", "spec.drain.deadlineSeconds must be set with onDeadline",
			set("spec.drain", list(object("backend", "a", "onDeadline", "Wait")))),
		Entry("with an unknown action at a drain's deadline", "spec.drain[0].onDeadline",
			set("spec.drain", list(object("backend", "a", "deadlineSeconds", int64(1), "onDeadline", "Kill")))),
		Entry("with an unknown fate of a drain's sessions", "spec.drain[0].sessions",
			set("spec.drain", list(object("backend", "a", "sessions", "Drop")))),
		Entry("with an ill-formed backend in a drain", "spec.drain[0].backend", set("spec.drain", list(object("backend", "A/B")))),
		Entry("with two drains of one backend", "spec.drain",
			set("spec.drain", list(object("backend", "a"), object("backend", "a")))),
		Entry("without senders", "spec.senders", unset("spec.senders")),
		Entry("with an empty list of senders", "spec.senders", set("spec.senders", list())),
		Entry("with 33 senders", "spec.senders", set("spec.senders", repeated(33, func(i int) any { return sender(fmt.Sprintf("s%d", i)) }))),
		Entry("with two senders of one name", "spec.senders", set("spec.senders", list(sender("a"), sender("a")))),
		Entry("with an ill-formed sender name", "spec.senders[0].name", set("spec.senders", list(sender("Train!")))),
		Entry("with a sender name of 64 characters", "spec.senders[0].name", set("spec.senders", list(sender(strings.Repeat("a", 64))))),
		Entry("with an unknown access", "spec.senders[0].access", set("spec.senders", list(sender("a", "access", "Shut")))),
		Entry("with a negative minGeneration", "spec.senders[0].minGeneration",
			set("spec.senders", list(sender("a", "minGeneration", int64(-1))))),
		Entry("with epoch 0", "spec.epoch", set("spec.epoch", int64(0))),
		Entry("with the same incarnation confirmed gone twice", "spec.confirmedGone", set("spec.confirmedGone", list("a", "a"))),
		Entry("with an empty incarnation confirmed gone", "spec.confirmedGone[0]", set("spec.confirmedGone", list(""))),
		Entry("with an incarnation of 301 characters", "spec.confirmedGone[0]",
			set("spec.confirmedGone", list(strings.Repeat("a", 301)))),
	)

	DescribeTable("is refused for an endpoint URL",
		func(ctx context.Context, url, message string) {
			err := api.Create(ctx, pool(endpoints(url)), client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring("spec.backends.endpoints.url: " + message)))
		},
		Entry("of another scheme", "ftp://b", "the scheme must be http or https"),
		Entry("without a scheme", "b:30000", "the scheme must be http or https"),
		Entry("with a path", "http://b/v1", "a path other than slashes is not allowed"),
		Entry("with a path after slashes", "http://b//v1", "a path other than slashes is not allowed"),
		Entry("with a query", "http://b/?a=b", "a query or fragment is not allowed"),
		Entry("with an empty query", "http://b?", "a query or fragment is not allowed"),
		Entry("with a fragment", "http://b/#a", "a query or fragment is not allowed"),
		Entry("with user info", "http://u:p@b/", "user info is not allowed"),
		Entry("without a host", "http://", "a host name or address with at most a port is expected"),
		Entry("with a port and no host", "http://:80", "a host name or address with at most a port is expected"),
		Entry("with an empty port", "http://b:", "a host name or address with at most a port is expected"),
		Entry("with a named port", "http://b:http", "a host name or address with at most a port is expected"),
		Entry("with a space", "http://b c/", "a host name or address with at most a port is expected"),
		Entry("with port 0", "http://b:0/", "the port must be between 1 and 65535"),
		Entry("with port 65536", "http://b:65536", "the port must be between 1 and 65535"),
	)
})

var _ = Describe("a number", func() {
	DescribeTable("is held to its bounds",
		func(ctx context.Context, path string, least, most int64, around ...edit) {
			create := func(value int64) error {
				return api.Create(ctx, pool(append(around, set(path, value))...), client.DryRunAll)
			}
			field := path[strings.LastIndex(path, ".")+1:]
			Expect(create(least)).To(Succeed())
			Expect(create(most)).To(Succeed())
			Expect(create(least - 1)).To(MatchError(ContainSubstring(field)))
			Expect(create(most + 1)).To(MatchError(ContainSubstring(field)))
		},
		Entry(nil, "spec.backends.port", int64(1), int64(65535)),
		Entry(nil, "spec.backends.capacity.value", int64(1), int64(1_000_000), set("spec.backends.capacity", object("source", "Fixed"))),
		Entry(nil, "spec.backends.capacity.fallback", int64(1), int64(1_000_000)),
		Entry(nil, "spec.routing.groupSlackPercent", int64(0), int64(1000)),
		Entry(nil, "spec.routing.admissionPercent", int64(0), int64(1000)),
		Entry(nil, "spec.routing.affinity.rebalance.marginPercent", int64(1), int64(1000), set("spec.routing.affinity.mode", "Rebalance")),
		Entry(nil, "spec.routing.affinity.rebalance.coolDownSeconds", int64(1), int64(86_400), set("spec.routing.affinity.mode", "Rebalance")),
		Entry(nil, "spec.routing.affinity.rebalance.prefillTokensPerSecond", int64(1), int64(10_000_000),
			set("spec.routing.affinity.mode", "Rebalance")),
		Entry(nil, "spec.routing.affinity.rebalance.stepMicrosecondsPerExecution", int64(1), int64(1_000_000),
			set("spec.routing.affinity.mode", "Rebalance")),
		Entry(nil, "spec.routing.affinity.idleTimeoutSeconds", int64(1), int64(604_800)),
		Entry(nil, "spec.routing.affinity.maxSessions", int64(1), int64(10_000_000)),
		Entry(nil, "spec.leases.ttlSeconds", int64(1), int64(86_400), set("spec.leases", object("startSeconds", int64(1)))),
		Entry(nil, "spec.leases.startSeconds", int64(1), int64(3600),
			set("spec.leases", object("ttlSeconds", int64(86_400), "certaintySeconds", int64(0)))),
		Entry(nil, "spec.leases.retentionSeconds", int64(2), int64(604_800)),
		Entry(nil, "spec.leases.maxRequests", int64(1), int64(10_000_000)),
		Entry(nil, "spec.leases.certaintySeconds", int64(0), int64(86_400)),
		Entry(nil, "spec.health.periodSeconds", int64(1), int64(300)),
		Entry(nil, "spec.health.timeoutSeconds", int64(1), int64(600)),
		Entry(nil, "spec.health.failureThreshold", int64(1), int64(100)),
		Entry(nil, "spec.health.budgetSeconds", int64(1), int64(86_400)),
		Entry(nil, "spec.epoch", int64(1), int64(1)<<52),
	)
})
