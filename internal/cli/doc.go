// Package cli is the user's command line, `kubectl berth`: commands that look at a pool, commands that
// change one entry of its spec, and those that judge it.
//
// Every change is a server-side apply of one entry under a field manager of that entry's own, so that
// two people who drain two backends do not undo each other's work, and so that taking a change back
// takes back nothing else. What another manager holds is not taken over unless the user says so.
//
// What a command found or did goes to the standard output, what the user may want to do next to the
// standard error.
package cli
