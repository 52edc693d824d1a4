package main

// authorityFaults break R11.
func authorityFaults() []fault {
	return []fault{
		{"R11 grants go on after leadership ends", "state.go",
			"\treturn s.term > 0 && (s.authority",
			"\treturn s.term > 0 || (s.authority"},
		{"R11 unknown load is not taken over", "apply.go",
			"\t\tb.settling.unknown = m.Load == LoadUnknown",
			"\t\tb.settling.unknown = m.Load == LoadUnknown && s.term == 0"},
		{"R11 start windows of earlier terms are ignored", "apply.go",
			"\t\tb.settling.windowsEnd = s.earlierWindows\n",
			""},
		{"R11 a fleet before the term ignores earlier windows", "adopt.go",
			"\t\tb.settling.windowsEnd = max(b.settling.windowsEnd, s.earlierWindows)\n",
			"\t\tb.settling.windowsEnd += 0\n"},
		{"R11 a retired incarnation ignores earlier windows", "adopt.go",
			"true, true, s.earlierWindows\n",
			"true, true, 0\n"},
		{"R11 a contradicting token is merged", "acquire.go",
			"\tif r.Prior == nil {",
			"\tif s.leases[r.ID] != nil || r.Prior == nil {"},
		{"R11 a contradicting token counts nothing", "adopt.go",
			"\tif known != nil {\n",
			"\tif known != nil {\n\t\treturn known, nil\n\t}\n\tif known != nil {\n"},
		{"R11 a token of an ended process is alive", "adopt.go",
			"\ts.enter(l, b, now)\n\tif b.process == processEnded {",
			"\ts.enter(l, b, now)\n\tif b.process == processEnded && b.retired {"},
	}
}

// failureFaults break R13.
func failureFaults() []fault {
	return []fault{
		{"R13 a failure is answered before it is in status", "adopt.go",
			"s.failure == nil || s.failure.recorded }",
			"s.failure == nil || s.failure.lease != nil || s.failure.recorded }"},
		{"R13 a failed pool grants", "acquire.go",
			"\tif s.failure != nil {\n\t\treturn refuse",
			"\tif s.failure != nil && s.failure.recorded {\n\t\treturn refuse"},
		{"R13 a lost lease fails the pool", "outcome.go",
			"\tcase phaseLost, phaseOrphaned:\n\t\treturn p, true",
			"\tcase phaseLost, phaseOrphaned:\n\t\treturn to, true"},
	}
}

// certaintyFaults break 5.3 of the design.
func certaintyFaults() []fault {
	return []fault{
		{"5.3 one snapshot proves quiescence", "chores.go",
			"\t\tb.settling.baseline = clocksOf(ranks)\n\t\treturn\n",
			"\t\tb.settling.baseline = clocksOf(nil)\n\t}\n\tif len(b.settling.baseline) == 0 {\n\t\tb.settling.baseline = clocksOf(ranks)\n\t\tfor r := range b.settling.baseline {\n\t\t\tb.settling.baseline[r]--\n\t\t}\n"},
		{"5.3 an old snapshot proves quiescence", "chores.go",
			"!ok || r.Clock <= was ||",
			"!ok || r.Clock < was ||"},
		{"5.3 one rank is forgotten", "chores.go",
			"\tif len(met) != len(before) {",
			"\tif len(met) > len(before) {"},
		{"5.3 a busy rank is empty enough", "chores.go",
			" || r.Total != 0 {",
			" || r.Total > 1 {"},
		{"5.3 an answer under an old stamp counts", "chores.go",
			"b == nil || stamp != b.settling.stamp ||",
			"b == nil ||"},
		{"5.3 an open start window is not waited for", "chores.go",
			" && now >= b.settling.windowsEnd",
			""},
		{"5.3 a paused engine proves quiescence", "chores.go",
			" && b.generates()\n",
			"\n"},
		{"5.3 a new execution does not disturb the proof", "ledger.go",
			"\t\tl.at.held.add(l)\n\t\tl.at.disturb()",
			"\t\tl.at.held.add(l)"},
		{"5.3 a pause by abort proves too much", "gone.go",
			" || begun <= b.settling.windowsEnd",
			""},
		{"5.3 a release closes the window since ever", "lease.go",
			"l.windowEnd = min(l.windowEnd, now)",
			"l.windowEnd = min(l.windowEnd, 0)"},
		{"5.3 writing does not close the window for good", "acquire.go",
			"\tif l.begun == NotStarted {",
			"\tif l.begun <= Started {"},
		{"5.3 the whole pool settles at once", "settle.go",
			"\tplaces := max(1, s.members/settlingShare)",
			"\tplaces := max(1, s.members)"},
		{"5.3 those waited for settle last", "settle.go",
			"\t\t\tcmp.Compare(b.settling.want, a.settling.want),",
			"\t\t\tcmp.Compare(a.settling.want, b.settling.want),"},
		{"5.3 exactly a tenth settles", "settle.go",
			"b.heldExecutions*excessShare > b.capacity",
			"b.heldExecutions*excessShare >= b.capacity"},
		{"5.3 certainty ends a moment early", "state.go",
			">= l.uncertainSince.add(s.config.Certainty) {",
			">= l.uncertainSince.add(s.config.Certainty/2) {"},
		{"5.3 strict certainty waits", "release.go",
			"\tif s.config.Certainty == 0 {",
			"\tif s.config.Certainty < 0 {"},
	}
}

// queueFaults break the promises about waiting.
func queueFaults() []fault {
	return []fault{
		{"waiting the youngest is served first", "queue.go",
			"l.first.ticket < first.ticket",
			"l.first.ticket > first.ticket"},
		{"waiting newcomers overtake", "acquire.go",
			"\tif s.queue.n == 0 || s.queue.lanes",
			"\tif s.queue.n >= 0 || s.queue.lanes"},
		{"waiting a client that hung up still waits", "table.go",
			"\ts.leave(w)\n\ts.freed = true",
			"\ts.freed = true"},
		{"waiting a closed home keeps its waiters", "bystander.go",
			"s.unsettled, s.freed = true, true, true",
			"s.unsettled, s.freed = true, true, false"},
		{"waiting what comes of a fence is told to the first only", "queue.go",
			"\t\tfor w := range l.all {\n\t\t\tif _, err := s.precheck",
			"\t\tfor w := range l.all {\n\t\t\tif w != l.first {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tif _, err := s.precheck"},
		{"waiting nobody is woken by a release", "ledger.go",
			"\ts.forgetIfRetired(l.at)\n\ts.freed = true\n",
			"\ts.forgetIfRetired(l.at)\n"},
	}
}
