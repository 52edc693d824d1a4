package access

import (
	"cmp"
	"time"
)

// Limits bound what is remembered, and what is asked at once.
type Limits struct {
	// Allowed is how long an answer in a caller's favour holds; default 1 min. It is the longest time
	// for which a right that was taken away goes on to work, once for the token and once for the right.
	Allowed time.Duration
	// Refused is how long a refusal holds; default 10 s.
	Refused time.Duration
	// Grace is how long an answer in a caller's favour holds while the API server cannot be asked;
	// default 10 min.
	Grace time.Duration
	// Tokens and Deeds bound the answers that are remembered; default 16,384 and 65,536.
	Tokens, Deeds int
	// IdentityBytes bounds what the callers' names, groups and extras hold that are remembered with tokens; default
	// 32 MiB.
	IdentityBytes int
	// AtOnce bounds the questions of each kind that are asked at the same time, the addresses that they come from
	// taking turns; default 64.
	AtOnce int
	// Waiting bounds the calls that wait for an answer. One address, or /64 of IPv6, has as many places as half
	// of those that are free yet. Beyond that a call is refused at once, to be made again; default 8,192.
	Waiting int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Allowed: cmp.Or(l.Allowed, time.Minute), Refused: cmp.Or(l.Refused, 10*time.Second), Grace: cmp.Or(l.Grace, 10*time.Minute),
		Tokens: cmp.Or(l.Tokens, 16384), Deeds: cmp.Or(l.Deeds, 65536), AtOnce: cmp.Or(l.AtOnce, 64),
		IdentityBytes: cmp.Or(l.IdentityBytes, 32<<20), Waiting: cmp.Or(l.Waiting, 8192),
	}
}
