package router

// Names and numbers are distinct types so that the compiler refuses to mix them up.
type (
	// PoolUID is the UID of the InferencePool object; everything in a table belongs to it.
	PoolUID string
	// BackendName names a backend: the pod's name, or the endpoint's name in the spec.
	BackendName string
	// Incarnation names one life of a backend's engine process, unique within the pool.
	Incarnation string
	// SenderName names a class of clients that can be fenced on its own.
	SenderName string
	// SessionID names a trajectory; chosen by the client.
	SessionID string
	// RequestID names one request for a lease; chosen by the client, used once.
	RequestID string
	// GroupID names the sibling sessions sampled from one prompt; empty: none.
	GroupID string
	// RID is what the client puts in the engine's `rid` field: random per grant, of fixed
	// length, because the engine aborts by prefix.
	RID string
	// Version is an opaque string naming the weights; empty: none is promised.
	Version string
	// Epoch is the operator's fencing number of the pool, from the spec; it only grows.
	Epoch int64
	// Term is the router's own number, raised at every take-over; 0: not yet allowed to grant.
	Term int64
)

// maxIDLength bounds every id that a client chooses, in bytes.
const maxIDLength = 128

// ValidID reports whether s is an id as the lease protocol has them:
// [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
func ValidID(s string) bool {
	if len(s) == 0 || len(s) > maxIDLength || !alphanumeric(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
