package main

// placementFaults break R1.
func placementFaults() []fault {
	return []fault{
		{"R1 ties are broken by position", "pick.go",
			"\treturn a.lastChosen < b.lastChosen\n}",
			"\treturn false\n}"},
		{"R1 capacity is ignored", "pick.go",
			"(a.outstanding+n)*b.capacity, (b.outstanding+n)*a.capacity; l != r",
			"a.outstanding+n, b.outstanding+n; l != r"},
		{"R1 the request's own executions are ignored", "pick.go",
			"(a.outstanding+n)*b.capacity, (b.outstanding+n)*a.capacity; l != r",
			"a.outstanding*b.capacity, b.outstanding*a.capacity; l != r"},
		{"R1 resident sessions do not break ties", "pick.go",
			"\tif l, r := a.sessions*b.capacity, b.sessions*a.capacity; l != r {",
			"\tif l, r := a.sessions, b.sessions; l != r && a.capacity < 0 {"},
		{"R1 fractions are compared as floats", "pick.go",
			"\tif l, r := (a.outstanding+n)*b.capacity, (b.outstanding+n)*a.capacity; l != r {",
			"\tif l, r := float32(a.outstanding+n)/float32(a.capacity), float32(b.outstanding+n)/float32(b.capacity); l != r {"},
		{"R1 the choice is not remembered", "acquire.go",
			"\ts.chosen(home)\n",
			""},
		{"R1 the mirror of a count lags", "ledger.go",
			"\t\ts.loads[b.slot].outstanding = b.outstanding + b.estimate",
			"\t\ts.loads[b.slot].outstanding = max(s.loads[b.slot].outstanding, b.outstanding+b.estimate)"},
		{"R1 a full backend hides one with room", "policy.go",
			"\t\tcase s.full(l.at, n), second >= 0",
			"\t\tcase second >= 0"},
	}
}

// stickinessFaults break R2.
func stickinessFaults() []fault {
	return []fault{
		{"R2 an inadmissible home keeps its sessions", "pick.go",
			"\treturn home != nil && home.closedFor(s.published, s.target) == \"\"",
			"\treturn home != nil"},
		{"R2 a session at rest is placed anew", "pick.go",
			"\treturn s.serves(v.home) && (s.config",
			"\treturn v.active > 0 && s.serves(v.home) && (s.config"},
		{"R2 the last backend is honoured by name alone", "pick.go",
			"|| b.Name != r.LastName ||",
			"||"},
		{"R2 Reset moves a session again and again", "acquire.go",
			"\t\tv.published = s.publications // the turn",
			"\t\t_ = s.publications // the turn"},
		{"R2 Reset moves a session in the middle of a turn", "pick.go",
			" || v.active > 0)",
			")"},
		{"R2 a session settles on a retired home", "backend.go",
			"\tcase b.retired:\n\t\treturn \"Retired\"\n",
			""},
	}
}
