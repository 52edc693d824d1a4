package router

// spans notes which version a session of a pinned sender began on, and marks a lease that comes on
// another: the rollout has waited for the session as long as it may, and whoever reads its turns must
// know that not all of them are of one version.
func (s *state) spans(v *session, l *lease) {
	if v == nil || l.version == "" || !s.pins(v.sender) {
		return
	}
	if v.began == "" {
		v.began = l.version
	}
	if v.began != l.version {
		l.span = spanMixed
	}
}
