package rollout

import (
	"strings"
	"time"
)

const (
	// firstBackoff is how long an engine is left alone after its first failure; each further one in
	// a row doubles it, up to longestBackoff.
	firstBackoff   = time.Second
	longestBackoff = time.Minute
	// longestShown is how much of a version a message has, in bytes.
	longestShown = 200
)

// Record is what a process remembers of one incarnation between calls: what is under way, what an
// engine last said, and how often it failed. A process that begins with an empty Record, and with
// Begun, Pause and PausedHow from the status, ends where the other would have ended.
type Record struct {
	Call    StepKind
	Report  Report
	Failure Failure
	// PausedAt is when a pause was last answered.
	PausedAt time.Time
	// Updated is the version of the last update that the engine said was done, until it is read.
	Updated Version
}

// Answer is how a call ended.
type Answer struct {
	// Reported is what Verify read.
	Reported Version
	// Problem is why the call failed, in the engine's own words where it has any; empty: it did not.
	Problem string
}

// Began is the record once a step has been begun. Weights that are about to change are not what they
// were read to be.
func (r Record) Began(s Step) Record {
	r.Call = s.Kind
	if s.Kind == StepUpdate || s.Kind == StepStamp {
		r.Report.Freshness, r.Updated = Stale, ""
	}
	return r
}

// Ended is the record once a step was answered, for better or worse, of a plan after goal. An engine
// that says that it was updated and then reports another version has failed.
func (r Record) Ended(s Step, a Answer, goal Version, now time.Time) Record {
	r.Call = NoStep
	if a.Problem != "" {
		return r.fail(goal, a.Problem, now)
	}
	switch s.Kind {
	case StepPause, StepRepause:
		r.PausedAt = now
		return r
	case StepUpdate, StepStamp:
		r.Updated = s.Version
		return r
	case StepVerify:
		return r.verified(a.Reported, goal, now)
	case StepContinue, NoStep:
	}
	return r.succeed()
}

func (r Record) verified(reported, goal Version, now time.Time) Record {
	asked := r.Updated
	r.Report, r.Updated = Report{Version: reported, Freshness: Fresh, At: now}, ""
	switch {
	case asked != "" && reported != asked:
		return r.fail(asked, "the engine was updated to "+shown(asked)+" and reports "+shown(reported), now)
	case reported == goal:
		return r.succeed()
	default:
		return r
	}
}

// shown is a version as a message has it: engines may report any text.
func shown(v Version) string {
	return strings.ToValidUTF8(string(v[:min(len(v), longestShown)]), "")
}

func (r Record) succeed() Record {
	r.Failure = Failure{}
	return r
}

// fail counts a failure. One about another version than the last is the first in its row.
func (r Record) fail(version Version, problem string, now time.Time) Record {
	count := 1
	if r.Failure.Version == version {
		count = r.Failure.Count + 1
	}
	r.Failure = Failure{Version: version, Message: problem, Count: count, RetryAt: now.Add(backoff(count))}
	return r
}

// backoff is how long to wait after the failure of that count.
func backoff(count int) time.Duration {
	d := firstBackoff
	for range count - 1 {
		if d *= 2; d >= longestBackoff {
			return longestBackoff
		}
	}
	return d
}

// Outdated is the record once something has happened that makes what the engine said doubtful: it
// was out of reach, or somebody else may have changed its weights.
func (r Record) Outdated() Record {
	r.Report.Freshness = Stale
	return r
}
