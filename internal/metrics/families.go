package metrics

const (
	poolBackends    = "berthmaster_pool_backends"
	poolCapacity    = "berthmaster_pool_capacity_executions"
	poolOutstanding = "berthmaster_pool_outstanding_executions"
	poolSkew        = "berthmaster_pool_load_skew_ratio"
	poolUnknown     = "berthmaster_pool_unknown_load_backends"
	poolSessions    = "berthmaster_pool_sessions"
	poolRecords     = "berthmaster_pool_request_records"
	poolWaiting     = "berthmaster_pool_waiting_requests"
	poolLongest     = "berthmaster_pool_longest_wait_seconds"
	poolUncertain   = "berthmaster_pool_uncertain_executions"
	poolFailed      = "berthmaster_pool_failed"
	poolOpen        = "berthmaster_pool_leasing_open"
	poolEpoch       = "berthmaster_pool_epoch"
	poolTerm        = "berthmaster_pool_term"
	rolloutActive   = "berthmaster_rollout_active"
	rolloutBackends = "berthmaster_rollout_backends"
	senderCounted   = "berthmaster_sender_outstanding_executions"
	senderFenced    = "berthmaster_sender_fenced"
)

// ofPool are the labels of what is counted pool by pool.
func ofPool(more ...string) []string { return append([]string{"namespace", "pool"}, more...) }

// poolFamilies are what a pool is.
func poolFamilies() []Family {
	return []Family{
		{poolBackends, Gauge, "backends", ofPool("state"), "Backends of the pool by state: Admissible, or why they take no new sessions."},
		{poolCapacity, Gauge, "executions", ofPool(), "Executions that the pool's backends can run at once."},
		{poolOutstanding, Gauge, "executions", ofPool(), "Executions counted: leased, or not yet known to be gone."},
		{poolSkew, Gauge, "ratio", ofPool(), "Coefficient of variation of outstanding per capacity over the admissible backends; 0 is perfect balance."},
		{poolUnknown, Gauge, "backends", ofPool(), "Backends on which executions of earlier terms may run."},
		{poolSessions, Gauge, "sessions", ofPool(), "Sessions that the router knows."},
		{poolRecords, Gauge, "requests", ofPool(), "Request records kept, ended ones included."},
		{poolWaiting, Gauge, "requests", ofPool(), "Acquires that wait for a lease."},
		{poolLongest, Gauge, "seconds", ofPool(), "How long the first of those that wait has waited; 0: nobody waits."},
		{poolUncertain, Gauge, "executions", ofPool(), "Leases released as Ambiguous that are neither proven dead nor given up on."},
		{poolFailed, Gauge, "1", ofPool(), "1 while the pool has failed and grants nothing."},
		{poolOpen, Gauge, "1", ofPool(), "1 while leasing is open, 0 while it is held."},
		{poolEpoch, Gauge, "1", ofPool(), "The operator's fencing number of the pool."},
		{poolTerm, Gauge, "1", ofPool(), "The router's own number; it rises at every take-over."},
		{rolloutActive, Gauge, "1", ofPool(), "1 while the target version is not the published one."},
		{rolloutBackends, Gauge, "backends", ofPool("progress"), "Backends by weight version: Updated, Outdated or Unconfirmed, against the target or, without one, the published version."},
		{senderCounted, Gauge, "executions", ofPool("sender"), "Executions of the sender that are counted."},
		{senderFenced, Gauge, "1", ofPool("sender"), "1 once the sender is fenced and none of its executions is counted or unknown."},
	}
}

const (
	grants     = "berthmaster_leases_granted_total"
	refusals   = "berthmaster_lease_refusals_total"
	releases   = "berthmaster_leases_released_total"
	lost       = "berthmaster_leases_lost_total"
	dead       = "berthmaster_executions_dead_total"
	orphans    = "berthmaster_executions_orphaned_total"
	unattached = "berthmaster_leases_without_affinity_total"
	moves      = "berthmaster_session_moves_total"
	mismatches = "berthmaster_version_mismatches_total"
	tokens     = "berthmaster_output_tokens_total"
	waits      = "berthmaster_wait_duration_seconds"
)

// leaseFamilies are what a pool's router did since this process began to serve the pool.
func leaseFamilies() []Family {
	return []Family{
		{grants, Counter, "leases", ofPool(), "Leases granted; the same lease given again is not counted."},
		{refusals, Counter, "requests", ofPool("reason"), "Acquires refused at their first attempt, by reason; those that then wait are among them."},
		{releases, Counter, "leases", ofPool("outcome"), "Leases released, by the outcome that the client reported first."},
		{lost, Counter, "leases", ofPool(), "Leases that were not renewed in time."},
		{dead, Counter, "executions", ofPool(), "Executions proven dead after their client could not say how they ended."},
		{orphans, Counter, "executions", ofPool(), "Executions of earlier epochs, or contradicted by a token."},
		{unattached, Counter, "leases", ofPool(), "Leases served without affinity because the table of sessions was full."},
		{moves, Counter, "sessions", ofPool(), "Moves of a session from one home to another."},
		{mismatches, Counter, "replies", ofPool(), "Replies made under another weight version than their lease promised."},
		{tokens, Counter, "tokens", ofPool(), "Output tokens that clients reported on release."},
		{waits, Histogram, "seconds", ofPool("result"), "How long acquires waited, by how the waiting ended: Granted, Refused or Abandoned."},
	}
}

const (
	backendOutstanding = "berthmaster_backend_outstanding_executions"
	backendHeld        = "berthmaster_backend_held_executions"
	backendCapacity    = "berthmaster_backend_capacity_executions"
	backendSessions    = "berthmaster_backend_sessions"
	backendUnknown     = "berthmaster_backend_unknown_load"
	backendPhantom     = "berthmaster_backend_phantom_executions"
	backendState       = "berthmaster_backend_state"
	backendCurrent     = "berthmaster_backend_weights_current"
)

// backendFamilies are what a backend is, all lives of its name together.
func backendFamilies() []Family {
	return []Family{
		{backendOutstanding, Gauge, "executions", ofPool("backend"), "Executions counted on the backend."},
		{backendHeld, Gauge, "executions", ofPool("backend"), "The part of outstanding for which no client answers: lost, cancelled, uncertain or orphaned."},
		{backendCapacity, Gauge, "executions", ofPool("backend"), "Executions that the backend can run at once; 0: unknown."},
		{backendSessions, Gauge, "sessions", ofPool("backend"), "Sessions whose home is the backend."},
		{backendUnknown, Gauge, "1", ofPool("backend"), "1 while executions of earlier terms may run on the backend."},
		{backendPhantom, Gauge, "executions", ofPool("backend"), "Outstanding minus what the engine's schedulers held at its last probe, counted apart in time: near 0 when both agree."},
		{backendState, Gauge, "1", ofPool("backend", "state"), "1 for the state that the backend is in: Admissible, or why it takes no new sessions."},
		{backendCurrent, Gauge, "1", ofPool("backend"), "1 while the backend is confirmed on the target version or, without one, the published version."},
	}
}

const (
	proxyDuration   = "berthmaster_proxy_request_duration_seconds"
	proxyFirstByte  = "berthmaster_proxy_first_byte_seconds"
	proxyIn         = "berthmaster_proxy_request_bytes_total"
	proxyOut        = "berthmaster_proxy_reply_bytes_total"
	proxyHeld       = "berthmaster_proxy_held_requests"
	proxyUnattached = "berthmaster_proxy_requests_without_session_total"
)

// proxyFamilies are what the transparent proxy did.
func proxyFamilies() []Family {
	return []Family{
		{proxyDuration, Histogram, "seconds", ofPool("outcome"), "From the arrival of a request at the proxy to its end, waiting included."},
		{proxyFirstByte, Histogram, "seconds", ofPool("outcome"), "From the arrival of a request at the proxy to the first byte of the reply that was passed on."},
		{proxyIn, Counter, "bytes", ofPool("outcome"), "Bodies of requests to the proxy."},
		{proxyOut, Counter, "bytes", ofPool("outcome"), "Bodies of replies through the proxy."},
		{proxyHeld, Gauge, "requests", ofPool(), "Requests that the proxy holds until there is a lease."},
		{proxyUnattached, Counter, "requests", ofPool(), "Requests to the proxy that named no session."},
	}
}

const (
	probeDuration  = "berthmaster_probe_duration_seconds"
	engineDuration = "berthmaster_engine_call_duration_seconds"
	statusWrites   = "berthmaster_status_writes_total"
	leading        = "berthmaster_leading"
	reigns         = "berthmaster_reigns_total"
)

// workFamilies are what the manager itself does.
func workFamilies() []Family {
	return []Family{
		{probeDuration, Histogram, "seconds", ofPool("result"), "Health probes by result: Answered, Failed, Refused or Parked."},
		{engineDuration, Histogram, "seconds", []string{"route", "code"}, "The manager's own calls to engines, by route and class of status; code error: no reply."},
		{statusWrites, Counter, "writes", ofPool("result"), "Writes of a pool's status by result: Written, Conflict or Failed."},
		{leading, Gauge, "1", nil, "1 while this replica leads."},
		{reigns, Counter, "reigns", nil, "How often this replica has begun to lead; a lapse that was renewed counts as another."},
	}
}
