package main

// fencingFaults break R7.
func fencingFaults() []fault {
	return []fault{
		{"R7 the granting step of a waiter checks nothing", "queue.go",
			"\tg, err := s.attempt(&w.req, now)",
			"\tg, err := s.place(&w.req, now)"},
		{"R7 the generation is compared one too low", "acquire.go",
			"r.SenderGeneration < v.MinGeneration",
			"r.SenderGeneration+1 < v.MinGeneration"},
		{"R7 a request goes by rights that were taken away", "acquire.go",
			"\tcase r.Rights != RightsUnasked && r.Rights != v.rights:\n\t\treturn ErrRightsChanged\n",
			""},
		{"R7 a fence is not looked at", "acquire.go",
			"\tcase v.Access == AccessFenced:\n\t\treturn refuse",
			"\tcase v.Access == AccessFenced && v.counted > 0:\n\t\treturn refuse"},
		{"R7 fenced is said while load is unknown", "snapshotting.go",
			"v.counted == 0 && !unknown",
			"v.counted == 0"},
		{"R7 a request of an older epoch is served", "acquire.go",
			"\tif r.Epoch != s.epoch {",
			"\tif r.Epoch > s.epoch {"},
		{"R7 a raised epoch leaves leases active", "apply.go",
			"\t\tfor l := range b.active.all {\n\t\t\ts.orphan(l, now)\n\t\t}\n",
			""},
		{"R7 a raised epoch uncounts what may run", "apply.go",
			"\ts.totals.Orphaned++\n\tdelete(s.uncertain, l)\n\ts.hold(l, phaseOrphaned, now)",
			"\ts.totals.Orphaned++\n\tdelete(s.uncertain, l)\n\tl.fate = FateDead\n\ts.drop(l, now)"},
	}
}

// drainingFaults break R8.
func drainingFaults() []fault {
	return []fault{
		{"R8 drained is said while load is unknown", "backend.go",
			" && !b.settling.unknown &&",
			" &&"},
		{"R8 drained is said while sessions come back", "backend.go",
			"\t\t(b.Drain != DrainKeep || b.sessions == 0)",
			"\t\t(b.Drain != DrainKeep || b.sessions >= 0)"},
		{"R8 a draining backend takes new sessions", "ledger.go",
			"s.target) == \"\" && b.Drain == NotDraining\n",
			"s.target) == \"\" && b.Drain != DrainMove\n"},
		{"R8 an aborting drain asks once only", "chores.go",
			"(c.reads || b.Drain == DrainAbort) && now",
			"c.reads && now"},
		{"R8 an aborting drain asks for the first of many only", "chores.go",
			"\tfor _, leases := range []*list[lease]{&b.active, &b.held} {\n\t\tfor l := range leases.all {\n\t\t\tif _, ok",
			"\tfor _, leases := range []*list[lease]{&b.held} {\n\t\tfor l := range leases.all {\n\t\t\tif _, ok"},
	}
}

// versionFaults break R9.
func versionFaults() []fault {
	return []fault{
		{"R9 an unconfirmed incarnation serves", "backend.go",
			"\tcase published == \"\" ||",
			"\tcase published == \"\" || confirmed == \"\" ||"},
		{"R9 what comes back to the fleet is as it was", "apply.go",
			"\t\tb.unsee()\n",
			""},
		{"R9 a lease across an update does not say mixed", "backend.go",
			"\t\t\t\tl.span = spanMixed\n",
			"\t\t\t\tl.span = spanOne\n"},
		{"R9 the first look after a take-over marks nothing", "backend.go",
			"if b.reported != \"\" || l.version != \"\" && l.version != v {",
			"if b.reported != \"\" {"},
		{"R9 a lease that nobody answers for does not say mixed", "backend.go",
			"\tfor _, leases := range []*list[lease]{&b.active, &b.held} {\n\t\tfor l := range leases.all {\n\t\t\tif b.reported",
			"\tfor _, leases := range []*list[lease]{&b.active} {\n\t\tfor l := range leases.all {\n\t\t\tif b.reported"},
		{"R9 a change that was undone before a token came is forgotten", "backend.go",
			"\treturn b.span\n",
			"\treturn spanOne\n"},
		{"R9 a probe of before a reload is believed", "apply.go",
			"\tif o.Seq <= b.stale {\n\t\tseen.Version = last.Version\n\t}\n",
			""},
		{"R9 a refused connection leaves the version confirmed", "bystander.go",
			"\tb.seen.Version, b.stale, b.outage = \"\", b.seen.Seq+1",
			"\tb.stale, b.outage = b.seen.Seq+1"},
		{"R9 a probe of before a refused connection is believed", "bystander.go",
			"\tb.seen.Version, b.stale, b.outage = \"\", b.seen.Seq+1, b.seen.Seq+1\n",
			"\tb.seen.Version, b.outage = \"\", b.seen.Seq+1\n"},
		{"R9 who vouches outlives a refused connection", "bystander.go",
			"\tb.seen.Version, b.stale, b.outage = \"\", b.seen.Seq+1, b.seen.Seq+1\n",
			"\tb.seen.Version, b.stale = \"\", b.seen.Seq+1\n"},
		{"R9 a second refused connection raises no doubt", "bystander.go",
			"\tif b == nil {\n\t\treturn\n\t}\n\tb.seen.Version, b.stale",
			"\tif b == nil || b.seen.Health != Healthy {\n\t\treturn\n\t}\n\tb.seen.Version, b.stale"},
	}
}

// pauseFaults break R10.
func pauseFaults() []fault {
	return []fault{
		{"R10 the idle clock runs while held", "apply.go",
			"\ts.idleClock.set(s.leasing == LeasingOpen && running",
			"\ts.idleClock.set(running"},
		{"R10 the idle clock runs while paused", "apply.go",
			"s.leasing == LeasingOpen && running == EngineRunning, now",
			"s.leasing == LeasingOpen && running != EngineUpdating, now"},
		{"R10 certainty runs out on a paused engine", "backend.go",
			"b.running.set(b.retired || b.generates(), now)",
			"b.running.set(true, now)"},
		{"R10 an older observation is taken", "apply.go",
			"\tif b == nil || o.Seq <= b.seen.Seq {",
			"\tif b == nil {"},
		{"R10 the last execution of a hold wakes nobody", "ledger.go",
			" || s.leasing == LeasingHeld) {",
			") {"},
		{"R10 a hold settles nothing", "settle.go",
			"\tcase s.leasing == LeasingHeld || s.awaited(b):",
			"\tcase s.awaited(b):"},
		{"R10 held leasing grants", "acquire.go",
			"\tif s.leasing == LeasingHeld {",
			"\tif s.leasing == LeasingHeld && s.failure != nil {"},
	}
}
