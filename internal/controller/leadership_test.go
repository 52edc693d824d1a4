package controller

import (
	"testing"
	"time"
)

// A renewal that comes at the last moment goes on with the reign, and the pools that saw its end by
// another reading of the clock must look again, or they wait for ever.
func TestALateRenewalWakesWhoeverHasSeenAuthorityEnd(t *testing.T) {
	after := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	l := &leadership{election: ElectionAwaited}
	if !l.extend(1, after(7), noon, nil) {
		t.Error("the first reign is no news")
	}
	if l.extend(1, after(8), after(1), nil) {
		t.Error("a renewal that nobody waited for is news")
	}
	if command, _ := l.at(after(8)); command != authorityNone {
		t.Fatal("authority outlives its end")
	}
	if !l.extend(1, after(14), after(7), nil) {
		t.Error("nobody is told that authority goes on, though somebody saw it end")
	}
	if l.extend(1, after(15), after(8), nil) {
		t.Error("what was told is news again")
	}
}
