package router

// checkWaiters: whoever heads a lane waits for a reason.
func (w *world) checkWaiters() {
	s := w.tab.state
	for _, l := range s.queue.lanes {
		for wt := range l.all {
			if s.leases[wt.req.ID] != nil {
				w.t.Fatalf("%s waits though its id has a record", wt.req.ID)
			}
		}
		if w.fleet.Config.Mode == Rebalance && l.first.lane.home != nil {
			continue // it waits for its home; that Rebalance might move it meanwhile promises nothing
		}
		r := l.first.req
		if err := s.admit(&r, w.tab.at(w.now)); err != nil {
			continue
		}
		if _, _, err := s.choose(&r, w.tab.at(w.now)); err == nil && l.first.lane == s.laneOf(&r) {
			w.t.Fatalf("%s waits though it could be served", r.ID)
		}
	}
}

// checkServed: what was granted to waiters in this step is allowed now, at an admissible
// backend, and nobody of the same lane who came before still waits.
func (w *world) checkServed() {
	failed := w.tab.Snapshot(w.now).Failure
	for _, c := range w.calls {
		for _, wt := range c.waiters {
			if _, known := w.served[wt]; known || !answered(wt) {
				continue
			}
			w.served[wt] = w.now
			if wt.err != nil || wt.grant.Again {
				continue
			}
			c.leased = true
			delete(w.placed, c.req.Session)
			w.noteGrant(c, &wt.grant)
			w.mustBeAllowed(c, failed)
			if at := wt.grant.Claim.Incarnation; !w.admissible(at, DrainKeep) {
				w.t.Fatalf("R1: waiter %s was sent to %s, which may not serve", c.req.ID, at)
			}
			w.checkTurn(wt)
		}
	}
	clear(w.stood)
	for _, l := range w.tab.state.queue.lanes {
		for wt := range l.all {
			w.stood[wt] = wt.lane
		}
	}
}

// checkTurn: one that joined the lane in this very step, behind others of another until then, may
// have joined it too late.
func (w *world) checkTurn(served *waiter) {
	l := w.tab.state.queue.lanes[served.lane]
	if l != nil && l.first.ticket < served.ticket && w.stood[l.first] == l.first.lane {
		w.t.Fatalf("%s was served before %s, which came first", served.req.ID, l.first.req.ID)
	}
}

// checkTraces: a session is known only if somebody has a lease of it, or had one.
func (w *world) checkTraces() {
	had := map[SessionID]bool{}
	for _, c := range w.calls {
		had[c.req.Session] = had[c.req.Session] || c.leased
	}
	for id := range w.tab.state.sessions {
		if !had[id] {
			w.t.Fatalf("session %s is known, and nobody ever had a lease of it", id)
		}
	}
}

// checkPlacesOfSettling: what should settle is known without anybody asking again; it does, unless it
// would take leases and the places are taken by others that are waited for no less.
func (w *world) checkPlacesOfSettling() {
	s := w.tab.state
	if s.unsettled {
		return
	}
	places, least, most := max(1, len(w.fleet.Members)/settlingShare), causeUncertain, settledCause
	for inc, b := range s.backends {
		want := s.causeOf(b)
		switch settles := b.settling.why != settledCause; {
		case want != b.settling.want:
			w.t.Fatalf("5.3: %s should settle for cause %d, the table thinks %d", inc, want, b.settling.want)
		case want == settledCause:
		case !s.forgoesLeases(b):
			if !settles {
				w.t.Fatalf("5.3: %s takes no leases and waits for a place", inc)
			}
		case settles:
			places, least = places-1, min(least, want)
		default:
			most = max(most, want)
		}
	}
	if most != settledCause && (places > 0 || least < most) {
		w.t.Fatalf("5.3: cause %d waits with %d places free, and cause %d has one", most, places, least)
	}
}
