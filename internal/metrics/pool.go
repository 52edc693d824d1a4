package metrics

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// stateAdmissible is the state of a backend that takes new sessions; of one that does not it is the
// router's reason.
const stateAdmissible = "Admissible"

func stateOf(b *router.BackendSnapshot) string {
	if b.Admissible {
		return stateAdmissible
	}
	return b.Reason
}

func (s sheet) pool(key router.PoolKey, v *router.Snapshot) {
	ns, name := key.Namespace, key.Name
	var capacity, outstanding, unknown int64
	states := map[string]int{stateAdmissible: 0}
	for i := range v.Backends {
		b := &v.Backends[i]
		outstanding += b.Outstanding
		if b.UnknownLoad {
			unknown++
		}
		if b.Retired {
			continue
		}
		capacity += b.Capacity
		states[stateOf(b)]++
	}
	for state, n := range states {
		s.put(poolBackends, float64(n), ns, name, state)
	}
	s.put(poolCapacity, float64(capacity), ns, name)
	s.put(poolOutstanding, float64(outstanding), ns, name)
	s.put(poolSkew, Skew(v.Backends), ns, name)
	s.put(poolUnknown, float64(unknown), ns, name)
	s.put(poolSessions, float64(v.Sessions), ns, name)
	s.put(poolRecords, float64(v.Requests), ns, name)
	s.put(poolWaiting, float64(v.Waiting), ns, name)
	s.put(poolLongest, longestWait(v.Queues).Seconds(), ns, name)
	s.put(poolUncertain, float64(v.Uncertain), ns, name)
	s.put(poolFailed, yes(v.Failure != nil), ns, name)
	s.put(poolOpen, yes(v.Leasing == router.LeasingOpen), ns, name)
	s.put(poolEpoch, float64(v.Epoch), ns, name)
	s.put(poolTerm, float64(v.Term), ns, name)
	s.rollout(key, v)
	for _, sender := range v.Senders {
		s.put(senderCounted, float64(sender.Counted), ns, name, string(sender.Name))
		s.put(senderFenced, yes(sender.Fenced), ns, name, string(sender.Name))
	}
}

func longestWait(queues []router.QueueSnapshot) time.Duration {
	var longest time.Duration
	for _, q := range queues {
		longest = max(longest, q.Longest)
	}
	return longest
}

// progress is where a backend stands against the version that it should have.
type progress string

const (
	updated     progress = "Updated"
	outdated    progress = "Outdated"
	unconfirmed progress = "Unconfirmed"
)

func progressOf(has, wanted router.Version) progress {
	switch has {
	case wanted:
		return updated
	case "":
		return unconfirmed
	default:
		return outdated
	}
}

// wanted is the version that every backend should have; empty: versions are not looked at.
func wanted(v *router.Snapshot) router.Version {
	if v.Target != "" {
		return v.Target
	}
	return v.Published
}

func (s sheet) rollout(key router.PoolKey, v *router.Snapshot) {
	s.put(rolloutActive, yes(v.Target != "" && v.Target != v.Published), key.Namespace, key.Name)
	want := wanted(v)
	if want == "" {
		return
	}
	counts := map[progress]int{updated: 0, outdated: 0, unconfirmed: 0}
	for i := range v.Backends {
		if b := &v.Backends[i]; !b.Retired {
			counts[progressOf(b.Version, want)]++
		}
	}
	for p, n := range counts {
		s.put(rolloutBackends, float64(n), key.Namespace, key.Name, string(p))
	}
}
