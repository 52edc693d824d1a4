package main

import "slices"

// fault is one planted mistake: a text of one file that becomes another.
type fault struct {
	// name says which promise is broken, and how.
	name     string
	file     string
	old, now string
}

// faults are all that are planted.
func faults() []fault {
	return slices.Concat(
		placementFaults(), stickinessFaults(), moveFaults(), identityFaults(), atMostOnceFaults(), ledgerFaults(), memoryFaults(), fencingFaults(),
		drainingFaults(), versionFaults(), pauseFaults(), authorityFaults(), adoptionFaults(), failureFaults(), certaintyFaults(), queueFaults(),
	)
}
