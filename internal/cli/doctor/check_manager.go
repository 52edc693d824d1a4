package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berthmaster/berthmaster/internal/cli/connect"
	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// checkManager: does anybody look at the pool?
func checkManager(w *World) []Finding {
	var found []Finding
	if w.Router == ThroughPod && !slices.ContainsFunc(w.Managers, ready) {
		found = append(found, Finding{ManagerMissing, Error, "the manager", fmt.Sprintf("no pod of the manager is ready (%d found)", len(w.Managers)),
			"install it, or see why its pod is not ready; if it runs in another namespace, name that with --router-namespace"})
	}
	if s := w.Pool.Status.ObservedGeneration; s < w.Pool.Generation {
		found = append(found, Finding{StatusBehind, Warning, "the pool",
			fmt.Sprintf("the status describes generation %d of the spec, which is at %d", s, w.Pool.Generation),
			"look again in a few seconds; if it stays so, see the manager's log, and whether its --namespace leaves this one out"})
	}
	return found
}

func ready(p corev1.Pod) bool { return connect.PodReady(&p) }

// checkLeaders: two that grant would each believe that a backend has room, and neither would know of
// the other's leases.
func checkLeaders(w *World) []Finding {
	var found []Finding
	running := slices.DeleteFunc(slices.Clone(w.Managers), func(p corev1.Pod) bool { return !ready(p) })
	if len(running) > 1 {
		for i := range running {
			if elects(&running[i]) {
				continue
			}
			found = append(found, Finding{TwoLeaders, Error, "pod " + running[i].Namespace + "/" + running[i].Name,
				fmt.Sprintf("it runs without --leader-elect beside %d other pods of the manager: each of them grants leases", len(running)-1),
				"scale the Deployment to one replica, or give every replica --leader-elect and --token-key-secret"})
		}
	}
	if w.Live != nil && w.Live.Term != 0 && w.Live.Term < w.Pool.Status.Term {
		found = append(found, Finding{TwoLeaders, Error, "the router",
			fmt.Sprintf("it grants under term %d, but term %d has been begun by another: %s", w.Live.Term, w.Pool.Status.Term, leader(w)),
			"end the replica that answered; nothing that it granted since is counted by the other"})
	}
	return found
}

func elects(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.Containers {
		for _, a := range slices.Concat(c.Command, c.Args) {
			if name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "="); name == "leader-elect" && value != "false" {
				return true
			}
		}
	}
	return false
}

func leader(w *World) string {
	if r := w.Pool.Status.Router; r != nil {
		return r.Name
	}
	if w.Lease != nil && w.Lease.Spec.HolderIdentity != nil {
		return *w.Lease.Spec.HolderIdentity
	}
	return "the status does not say whom"
}

// checkRouter: does it answer, and this user?
func checkRouter(w *World) []Finding {
	switch err := w.LiveErr; {
	case err == nil && w.Live != nil && w.Live.Term == 0:
		return one(Finding{RouterUnreachable, Error, "the router", "it may grant no lease now: it does not lead, or its leadership has run out",
			"see whether the manager reaches the API server, and who holds the Lease berthmaster-manager"})
	case err == nil:
		return nil
	case live.Refused(err, "Unauthenticated"), live.Refused(err, "Forbidden"):
		return one(Finding{CallerRefused, Error, "you", "the router refuses you: " + err.Error(),
			"get the right to get inferencepools/leases in this namespace (role inferencepool-viewer), or use --as-service-account"})
	case live.Refused(err, "PoolNotFound"):
		return one(Finding{RouterUnreachable, Error, "the router", "it does not know the pool",
			"see whether its --namespace leaves this one out, and its log"})
	case errors.Is(err, errNotAsked):
		return nil
	default:
		return one(Finding{RouterUnreachable, Error, "the router", err.Error(),
			"clients cannot take leases if it is the same for them: see the manager's pod and log"})
	}
}

// errNotAsked: what stands in the way of asking is another finding.
var errNotAsked = errors.New("the router was not asked")

// skewAllowed is how far two clocks may be apart before tokens suffer.
const skewAllowed = time.Minute

// checkCredentials: a token that has expired by the API server's clock may look good by the user's.
func checkCredentials(w *World) []Finding {
	var found []Finding
	you := w.You
	server := you.ServerTime
	if server.IsZero() {
		server = you.LocalTime
	}
	if !you.TokenExpires.IsZero() && !server.Before(you.TokenExpires) {
		found = append(found, Finding{TokenExpired, Error, "you",
			fmt.Sprintf("your token expired at %s, and the API server's clock says %s", you.TokenExpires.UTC().Format(time.RFC3339), server.UTC().Format(time.RFC3339)),
			"get another: log in again, or kubectl create token"})
	}
	if you.ServerTime.IsZero() {
		return found
	}
	if skew := you.LocalTime.Sub(you.ServerTime); skew.Abs() > skewAllowed {
		found = append(found, Finding{ClockSkewed, Warning, "you",
			fmt.Sprintf("this machine's clock is %s from the API server's", skew.Round(time.Second)),
			"set it: tokens seem to be good here when they have expired there, and the other way round"})
	}
	return found
}

// JudgeIdentity judges the user's credentials alone, for when they open nothing else.
func JudgeIdentity(you Identity) []Finding { return checkCredentials(&World{You: you}) }

// checkShadow: another project has the same kind in another group.
func checkShadow(w *World) []Finding {
	if len(w.Shadows) == 0 {
		return nil
	}
	return one(Finding{KindShadowed, Notice, "the cluster",
		"it also has " + strings.Join(w.Shadows, ", ") + ": `kubectl get inferencepools` may mean that one",
		"write inferencepools.inference.berthmaster.io, or rlpool, in scripts and roles"})
}
