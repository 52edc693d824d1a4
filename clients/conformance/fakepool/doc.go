// Package fakepool plays the router and the engines of a conformance scenario on loopback, takes
// down what a client does, and judges it.
//
// # The trace
//
// Every call and every request is a word, in the order in which it was noticed:
//
//	acquire, acquire+token    an acquire, with a lease token or without
//	renew, renew+started      a renewal, with started or without
//	release:OUTCOME           a release under a token
//	forgo                     a release without a token
//	end                       the end of a session
//	send                      the first byte of a request at an engine
//	request                   a whole request at an engine
//	hungup                    a client closed a connection to an engine that owed it a reply
//	refused                   the router was called in a way that it would refuse
//
// In a scenario's counts a word also stands for every word that begins with it and goes on with +
// or :, so that renew counts both of its kinds. WORD*N, in until, is the N-th such word.
//
// # What is judged always
//
// Whatever the scenario says, nothing may be written to an engine but under a lease of it, once; a
// lease that was given must be released, always with one outcome; and NotSent must be true. The file
// laws.go has all of them, each with the rule that it enforces.
package fakepool
