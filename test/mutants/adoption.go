package main

// adoptionFaults break what becomes of tokens of earlier terms (R5, R7, R8, R11).
func adoptionFaults() []fault {
	return []fault{
		{"R11 a contradicting token is merged", "acquire.go",
			"\tif r.Prior == nil {",
			"\tif s.leases[r.ID] != nil || r.Prior == nil {"},
		{"R11 a contradicting token counts nothing", "adopt.go",
			"\tb := s.backendOf(c, now)\n\tl.span",
			"\tif known != nil {\n\t\treturn known, nil\n\t}\n\tb := s.backendOf(c, now)\n\tl.span"},
		{"R11 a token of an ended process is alive", "grave.go",
			"\t\tif b.past == pastClosed {",
			"\t\tif b.past == pastClosed && b.retired {"},
		{"R7 a token of an earlier term opens what was proven closed", "gone.go",
			"\tb.past, b.settling.unknown = pastClosed, false\n",
			"\tb.settling.unknown = false\n\tif b.process == processEnded {\n\t\tb.past = pastClosed\n\t}\n"},
		{"R11 a pause proves something before a term has begun", "gone.go",
			"b == nil || s.term == 0 || !b.unproven()",
			"b == nil || !b.unproven()"},
		{"R5 the end of a process that was not met is forgotten", "gone.go",
			"\t\ts.graves.add(inc, processEnded)\n",
			""},
		{"R5 the end of a process is forgotten with its record", "ledger.go",
			"\t\t\ts.graves.add(b.Incarnation, b.process)\n",
			""},
		{"R5 what has ended serves from a fleet read before", "grave.go",
			"\t\tb.process, b.past = p, pastClosed",
			"\t\tb.process, b.past = min(p, processRuns), pastClosed"},
		{"R6 ends are remembered for ever", "grave.go",
			"\tdelete(g.process, g.order[g.oldest])\n",
			""},
	}
}
