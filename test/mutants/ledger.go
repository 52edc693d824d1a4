package main

// identityFaults break R3.
func identityFaults() []fault {
	return []fault{
		{"R3 identity leaves out the executions", "acquire.go",
			"\tcase l.who != r.identity():",
			"\tcase l.who.session != r.Session:"},
		{"R3 a second outcome replaces the first", "release.go",
			"\tcase repeated && l.outcome != o:",
			"\tcase repeated && l.outcome != o && o == OutcomeNone:"},
		{"R3 a renewal revives what is held", "release.go",
			"\tif l.phase != phaseActive {\n\t\treturn Renewal{}",
			"\tif l.phase == phaseEnded {\n\t\treturn Renewal{}"},
		{"R3 retention is counted from the last renewal", "ledger.go",
			"\tl.phase, l.endedAt, l.session = phaseEnded, now, nil",
			"\tl.phase, l.endedAt, l.session = phaseEnded, l.expires-instant(s.config.TTL), nil"},
		{"R3 who waits twice under an id gets two leases", "acquire.go",
			"\tcase l != nil:\n\t\treturn s.again(l, now)",
			"\tcase l != nil && l.others > 0:\n\t\treturn s.again(l, now)"},
	}
}

// atMostOnceFaults break R4.
func atMostOnceFaults() []fault {
	return []fault{
		{"R4 a tombstone is evicted at the cap", "acquire.go",
			"\tif len(s.leases) >= s.config.MaxRequests {",
			"\tif l := s.ended.first; l != nil && len(s.leases) >= s.config.MaxRequests {\n\t\ts.ended.remove(l)\n\t\ts.forgetRecord(l)\n\t}\n\tif len(s.leases) >= s.config.MaxRequests {"},
		{"R4 a lease that is taken back leaves a record", "ledger.go",
			"\tdelete(s.leases, l.id)\n\ts.totals.Grants--",
			"\ts.totals.Grants--"},
		{"R4 a lease that another caller holds is taken back", "ledger.go",
			"\tcase l.others > 0:\n",
			"\tcase l.others < 0:\n"},
		{"R5 a lease that was taken back from all but nobody stays", "ledger.go",
			"\t\tl.others--\n",
			""},
		{"R4 a lease is taken back twice over", "acquire.go",
			"\tl.others++\n",
			"\tl.others = 1\n"},
	}
}

// ledgerFaults break R5.
func ledgerFaults() []fault {
	return []fault{
		{"R5 a count is inherited under the same name", "apply.go",
			"\t\ts.backends[m.Incarnation] = b\n",
			"\t\tfor _, o := range s.backends {\n\t\t\tif o.Name == m.Name {\n\t\t\t\tb.outstanding = o.outstanding\n\t\t\t}\n\t\t}\n\t\ts.backends[m.Incarnation] = b\n"},
		{"R5 a lost execution is uncounted when it is lost", "state.go",
			"\t\ts.hold(l, phaseLost, now)",
			"\t\tl.fate = FateDead\n\t\ts.drop(l, now)"},
		{"R5 leaving the fleet forgets what runs", "apply.go",
			"\t\t\tb.retired = true\n",
			"\t\t\tb.retired = true\n\t\t\tdelete(s.backends, inc)\n"},
		{"R5 leaving the fleet clears unknown load", "apply.go",
			"\t\t\tb.retired = true\n",
			"\t\t\tb.retired, b.settling.unknown = true, false\n"},
		{"R5 who holds no token ends what was written", "release.go",
			"\tif l.begun == Started || l.phase.held() {",
			"\tif l.phase.held() {"},
		{"R5 who holds no token ends what was lost", "release.go",
			"\tif l.begun == Started || l.phase.held() {",
			"\tif l.begun == Started {"},
		{"R5 Cancelled uncounts at once", "outcome.go",
			"\tcase eventCancelled:\n\t\treturn p.unanswered(phaseCancelled)",
			"\tcase eventCancelled:\n\t\treturn phaseEnded, true"},
		{"R5 an ended process keeps its active leases", "gone.go",
			"\tfor l := range b.active.all {\n\t\ts.die(l, now)\n\t}\n",
			""},
	}
}

// memoryFaults break R6.
func memoryFaults() []fault {
	return []fault{
		{"R6 a session at work stays in the idle list", "session.go",
			"\tv.grants++\n\ts.idle.remove(v)",
			"\tv.grants++"},
		{"R6 the session cap is off by one", "session.go",
			"\tif len(s.sessions) >= s.config.MaxSessions {",
			"\tif len(s.sessions) > s.config.MaxSessions {"},
		{"R6 the request cap is off by one", "acquire.go",
			"\tif len(s.leases) >= s.config.MaxRequests {",
			"\tif len(s.leases) > s.config.MaxRequests {"},
		{"R6 an ended record is never forgotten", "state.go",
			"\t\tif l.endedAt.add(s.config.Retention) > now {",
			"\t\tif l.endedAt.add(s.config.Retention) > 0 {"},
	}
}
