package router

// steadily is a step in which clients present their tokens: what was called complete before stays so (R7, R8).
func (w *world) steadily(do func()) func() {
	return func() {
		before, met := w.tab.Snapshot(w.now), w.unproven()
		do()
		for inc := range w.unproven() {
			if _, known := met[inc]; !known {
				return // a token has named an engine of which nobody knew, and that may run what it tells
			}
		}
		after := w.tab.Snapshot(w.now)
		for _, v := range before.Senders {
			if v.Fenced && !fencedIn(&after, v.Name) {
				w.t.Fatalf("R7: %s was called fenced, and a client's token has opened the fence", v.Name)
			}
		}
		for _, b := range before.Backends {
			if now := w.tab.state.backends[b.Incarnation]; b.Drained && now != nil && !now.drained() {
				w.t.Fatalf("R8: %s was called drained, and a client's token has undone that", b.Incarnation)
			}
		}
	}
}

// unproven are the incarnations of unknown load.
func (w *world) unproven() map[Incarnation]struct{} {
	out := map[Incarnation]struct{}{}
	for inc, b := range w.tab.state.backends {
		if b.settling.unknown {
			out[inc] = struct{}{}
		}
	}
	return out
}

func fencedIn(snap *Snapshot, name SenderName) bool {
	for _, v := range snap.Senders {
		if v.Name == name {
			return v.Fenced
		}
	}
	return true // it has left the spec: nobody calls it anything
}
