package router

// group remembers where the siblings of one prompt were placed last, as long as one of them
// is known.
type group struct {
	id      GroupID
	home    *backend
	members int64
}

// joinGroup makes v a sibling; only once, and only while groups are looked at.
func (s *state) joinGroup(v *session, id GroupID) {
	if id == "" || v.group != nil || s.config.GroupSlackPercent == 0 {
		return
	}
	g := s.groups[id]
	if g == nil {
		g = &group{id: id}
		s.groups[id] = g
	}
	g.members++
	v.group = g
}

// leaveGroup forgets the group with its last member.
func (s *state) leaveGroup(v *session) {
	g := v.group
	if g == nil {
		return
	}
	v.group = nil
	if g.members--; g.members == 0 {
		delete(s.groups, g.id)
	}
}

// besideSiblings is the backend of the request's group, while its load is within the slack of
// the least loaded: a shared prefix saves a prefill, an overloaded backend costs more.
func (s *state) besideSiblings(r *Request, best int) *backend {
	slack := s.config.GroupSlackPercent
	g := s.groups[r.Group]
	if slack == 0 || g == nil || g.home == nil || g.home.slot < 0 || s.full(g.home, r.Executions) {
		return nil
	}
	mine, least := &s.loads[g.home.slot], &s.loads[best]
	if (mine.outstanding+r.Executions)*least.capacity*100 > (least.outstanding+r.Executions)*mine.capacity*(100+slack) {
		return nil
	}
	return g.home
}
