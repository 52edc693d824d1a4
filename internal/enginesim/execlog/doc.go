// Package execlog is the evidence for at-most-once execution, kept outside the processes that claim it.
//
// Every simulated engine appends two lines of JSON per execution to a file of its own: one when its scheduler
// accepts the sequence and one when the sequence ends. Clients may append what they were told to a log of
// theirs. Check reads both and says which (session, turn) was executed more than once without leave.
//
// # The engine's log
//
//	{"time":"2026-01-02T03:04:05.6Z","event":"boot","backend":"sglang-0","life":"9f3c"}
//	{"time":"...","event":"start","backend":"sglang-0","life":"9f3c","session":"s1","turn":"4","rid":"r-77","sample":0}
//	{"time":"...","event":"finish","backend":"sglang-0","life":"9f3c","session":"s1","turn":"4","rid":"r-77",
//	 "sample":0,"outcome":"finished","outputTokens":120,"weightVersion":"step-41"}
//
// A restarted engine appends to the same file under a new life. A start whose finish is missing belongs to a
// life that was killed, or that still runs. Each line is handed to the operating system in one write, so a
// killed process loses none; it is fsync'd at an interval, so a lost machine loses at most that much. A torn
// last line is tolerated: a reader skips it and a writer that appends starts a new line.
//
// # The client's log
//
//	{"time":"...","session":"s1","turn":"4","rid":"r-77","event":"dead"}
//
// Only "dead" gives leave for another execution: the router's answer that this rid is known to have ended and
// will never produce a reply. Other events are there to be counted. Times of the two logs are compared, so
// both must be written on one machine.
package execlog
