package prober

// Result is how one probe ended.
type Result string

// The results.
const (
	// ResultAnswered: the engine proved that it generates.
	ResultAnswered Result = "Answered"
	// ResultFailed: it did not.
	ResultFailed Result = "Failed"
	// ResultRefused: nobody listens at its address.
	ResultRefused Result = "Refused"
	// ResultParked: it does not generate, and its scheduler answers.
	ResultParked Result = "Parked"
)

// Results lists every result.
func Results() []Result {
	return []Result{ResultAnswered, ResultFailed, ResultRefused, ResultParked}
}

// resultOf is how a probe ended that brought an event of that kind.
func resultOf(k kind) Result {
	switch k {
	case probeAnswered:
		return ResultAnswered
	case probeRefused:
		return ResultRefused
	case probeParked:
		return ResultParked
	case probeFailed, budgetDue, wePause, weResume, weWereRefused: // the latter four are no probes
	}
	return ResultFailed
}
