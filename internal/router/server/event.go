package server

import "github.com/berthmaster/berthmaster/internal/router"

// eventType names what a watch stream tells.
type eventType string

// The events. Held and Fenced mean what they mean in status: reached, not merely asked for.
const (
	// eventState opens a stream that resumes nothing: the live view as of its event id.
	eventState eventType = "State"
	// eventEpochRaised: every earlier lease and session has ended.
	eventEpochRaised eventType = "EpochRaised"
	// eventVersionPublished: leases promise another version.
	eventVersionPublished eventType = "VersionPublished"
	// eventHeld: leasing is held and nothing is counted or unknown any more.
	eventHeld eventType = "Held"
	// eventOpened: leasing is open again, or, with a sender, that sender is.
	eventOpened eventType = "Opened"
	// eventFenced: the sender gets no lease and none of its executions is counted or unknown.
	eventFenced eventType = "Fenced"
	// eventFailed: the pool has failed, and status says so.
	eventFailed eventType = "Failed"
	// eventBackendGone: the incarnation has ended or left the pool, and nothing is counted there.
	eventBackendGone eventType = "BackendGone"
	// eventPoolGone ends the stream: the pool is not served here any more.
	eventPoolGone eventType = "PoolGone"
)

// event is one event, with what it is about.
type event struct {
	Type             eventType         `json:"type"`
	Epoch            router.Epoch      `json:"epoch"`
	Term             router.Term       `json:"term"`
	PublishedVersion *router.Version   `json:"publishedVersion,omitempty"`
	Sender           router.SenderName `json:"sender,omitempty"`
	Backend          *backendRef       `json:"backend,omitempty"`
	Failure          *failureAnswer    `json:"failure,omitempty"`
	State            *poolAnswer       `json:"state,omitempty"`
}

// changesBetween tells what happened from one snapshot to the next. What came and went between
// the two is not told: a watcher learns where the pool is, not every step.
func changesBetween(before, after *router.Snapshot) []event {
	var out []event
	tell := func(e event) {
		e.Epoch, e.Term = after.Epoch, after.Term
		out = append(out, e)
	}
	if after.Epoch > before.Epoch {
		tell(event{Type: eventEpochRaised})
	}
	if after.Published != before.Published {
		version := after.Published
		tell(event{Type: eventVersionPublished, PublishedVersion: &version})
	}
	if failedDurably(after) && !failedDurably(before) {
		tell(event{Type: eventFailed, Failure: failureOf(after.Failure)})
	}
	leasingChanges(before, after, tell)
	senderChanges(before, after, tell)
	backendChanges(before, after, tell)
	return out
}

// failedDurably: the failure is in status; before that nobody is told (R13).
func failedDurably(v *router.Snapshot) bool { return v.Failure != nil && v.Failure.Recorded }

func leasingChanges(before, after *router.Snapshot, tell func(event)) {
	switch {
	case held(after) && !held(before):
		tell(event{Type: eventHeld})
	case after.Leasing == router.LeasingOpen && before.Leasing != router.LeasingOpen:
		tell(event{Type: eventOpened})
	}
}

// held is the condition of that name: "leasing is held and nothing is counted or unknown".
func held(v *router.Snapshot) bool {
	for i := range v.Backends {
		if v.Backends[i].Outstanding > 0 || v.Backends[i].UnknownLoad {
			return false
		}
	}
	return v.Leasing == router.LeasingHeld
}

func senderChanges(before, after *router.Snapshot, tell func(event)) {
	was := make(map[router.SenderName]router.SenderSnapshot, len(before.Senders))
	for _, v := range before.Senders {
		was[v.Name] = v
	}
	for _, v := range after.Senders {
		switch old := was[v.Name]; {
		case v.Fenced && !old.Fenced:
			tell(event{Type: eventFenced, Sender: v.Name})
		case v.Access == router.AccessOpen && old.Access == router.AccessFenced:
			tell(event{Type: eventOpened, Sender: v.Name})
		}
	}
}

func backendChanges(before, after *router.Snapshot, tell func(event)) {
	lives := make(map[router.Incarnation]struct{}, len(after.Backends))
	for i := range after.Backends {
		if b := &after.Backends[i]; !ended(b) {
			lives[b.Incarnation] = struct{}{}
		}
	}
	for i := range before.Backends {
		b := &before.Backends[i]
		if _, ok := lives[b.Incarnation]; !ok && !ended(b) {
			tell(event{Type: eventBackendGone, Backend: &backendRef{b.Name, b.Incarnation}})
		}
	}
}

// ended: the engine process of this member is known to have ended.
func ended(b *router.BackendSnapshot) bool { return b.Reason == "ProcessEnded" }
