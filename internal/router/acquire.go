package router

import (
	"errors"
	"strconv"
)

// acquire returns the lease of a request: the same again for an id that has one, else a new
// one. The checks that refuse are made in the step that grants, so that nothing granted
// predates a fence, a hold, a failure or an epoch.
func (s *state) acquire(r *Request, now instant) (Grant, error) {
	s.advance(now)
	if err := s.inTurn(r, now); err != nil {
		s.countRefusal(err)
		return Grant{}, err
	}
	g, err := s.attempt(r, now)
	if err != nil {
		s.countRefusal(err)
	}
	return g, err
}

// inTurn refuses a newcomer that could be served while others wait for the same: they came
// first, and would wait for ever behind newcomers that ask for less.
func (s *state) inTurn(r *Request, now instant) error {
	if s.queue.n == 0 || s.queue.lanes[s.laneOf(r)] == nil {
		return nil
	}
	if s.couldPlace(r, now) {
		return s.contended()
	}
	return nil // it has its answer, whoever waits
}

// couldPlace reports whether r is a new request that a backend could take now.
func (s *state) couldPlace(r *Request, now instant) bool {
	if l, err := s.precheck(r, now); l != nil || err != nil {
		return false
	}
	_, _, err := s.choose(r, now)
	return err == nil
}

// attempt is acquire at a moment that has been brought up to now.
func (s *state) attempt(r *Request, now instant) (Grant, error) {
	l, err := s.precheck(r, now)
	switch {
	case err != nil:
		return Grant{}, err
	case l != nil:
		return s.again(l, now)
	default:
		return s.place(r, now)
	}
}

// precheck makes every check that does not depend on a backend, and finds the lease that the
// request has already.
func (s *state) precheck(r *Request, now instant) (*lease, error) {
	if r.Epoch != s.epoch {
		return nil, s.staleEpoch(r.Epoch)
	}
	l, err := s.known(r, now)
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, s.admit(r, now)
	case l.who != r.identity():
		return nil, refuse(ReasonRequestConflict, "requestID", "this requestID was used with another identity; a new request needs a new id")
	case !s.mayGrant(now):
		return nil, lapsed()
	case l.phase != phaseActive:
		return nil, l.refusal(s.epoch)
	default:
		return l, nil
	}
}

func (s *state) countRefusal(err error) {
	var r *Refusal
	if errors.As(err, &r) {
		s.totals.Refused[r.Reason]++
	}
}

func (s *state) staleEpoch(asked Epoch) *Refusal {
	if s.epoch == 0 {
		return refuse(ReasonNoLeader, "", "the pool has not been read yet")
	}
	out := refuse(ReasonStaleEpoch, "epoch", "the request names epoch "+strconv.FormatInt(int64(asked), 10)+
		", the pool is at "+strconv.FormatInt(int64(s.epoch), 10)+"; begin new sessions under the pool's epoch")
	out.Epoch = s.epoch
	return out
}

// known finds the lease that the request has already: by the token of its grant, which after a
// take-over may contradict what is known under its id, else by its id.
func (s *state) known(r *Request, now instant) (*lease, error) {
	if r.Prior == nil {
		return s.leases[r.ID], nil
	}
	if r.Prior.Request != r.ID || r.Prior.identity() != r.identity() {
		return nil, refuse(ReasonRequestConflict, "token", "the token is of another request")
	}
	return s.locate(r.Prior, now)
}

// again answers a second acquire of an id (R3). It asked nothing of access or leasing, since
// it grants nothing; like a renewal it opens the start window anew.
func (s *state) again(l *lease, now instant) (Grant, error) {
	s.extend(l, now)
	l.others++
	g := s.grant(l)
	g.Again = true
	return g, nil
}

// admit makes the checks that a new lease must pass.
func (s *state) admit(r *Request, now instant) error {
	if !s.mayGrant(now) {
		return refuse(ReasonNoLeader, "", "this router holds no term yet")
	}
	if s.failure != nil {
		return refuse(ReasonPoolFailed, "", "the pool has failed on an ambiguous execution; raising spec.epoch is the one way back")
	}
	if err := s.admitSender(r); err != nil {
		return err
	}
	if s.leasing == LeasingHeld {
		return refuse(ReasonLeasingHeld, "", "leasing is held: by spec.leasing, or until a change of weights is done")
	}
	if len(s.leases) >= s.config.MaxRequests {
		return refuse(ReasonContended, "", "the router keeps as many request records as spec.leases.maxRequests allows")
	}
	return s.admitSession(r)
}

func (s *state) admitSession(r *Request) error {
	v := s.sessions[r.Session]
	switch {
	case v == nil && s.ending == PinsEnding && s.pins(r.Sender):
		return refuse(ReasonLeasingHeld, "sessionID", "a change of weights waits for this sender's sessions to end before others begin")
	case v != nil && v.sender != r.Sender:
		return refuse(ReasonRequestConflict, "sessionID", "this session belongs to another sender")
	}
	return nil
}

func (s *state) admitSender(r *Request) error {
	v := s.senders[r.Sender]
	switch {
	case v == nil || !v.declared:
		return refuse(ReasonSenderUnknown, "sender", "spec.senders has no sender of this name")
	case r.Rights != RightsUnasked && r.Rights != v.rights:
		return ErrRightsChanged
	case r.SenderGeneration < v.MinGeneration:
		return refuse(ReasonStaleGeneration, "senderGeneration", "spec.senders asks for generation "+
			strconv.FormatInt(v.MinGeneration, 10)+" or later of this sender")
	case v.Access == AccessFenced:
		return refuse(ReasonSenderFenced, "sender", "spec.senders fences this sender")
	}
	return nil
}

// place finds the backend and counts the lease there, in one step.
func (s *state) place(r *Request, now instant) (Grant, error) {
	v := s.sessions[r.Session]
	home, c, err := s.chooseFor(v, r, now)
	if err != nil {
		return Grant{}, err
	}
	if v == nil {
		v = s.openSession(r.Session, r.Sender)
	}
	switch {
	case v == nil:
		s.chosen(home)
	case v.home != home:
		s.joinGroup(v, r.Group)
		s.moveHome(v, home, c, now)
		s.chosen(home)
	case v.active == 0:
		v.published = s.publications // the turn boundary at which Reset may move it has passed
	}
	l := &lease{id: r.ID, who: r.identity(), rid: s.newRID(), session: v, version: s.versionAt(home), term: s.term, place: -1}
	s.spans(v, l)
	s.enter(l, home, now)
	s.totals.Grants++
	return s.grant(l), nil
}

// enter makes l an active lease at b.
func (s *state) enter(l *lease, b *backend, now instant) {
	s.file(l)
	s.count(l, b)
	s.extend(l, now)
}

// extend opens the TTL anew, and the start window unless the client has begun. The client counts
// its window from sending, which is earlier than now: ours ends no sooner than its. A window that was
// shortened meanwhile ends with the longer one: the answer that says so may be lost.
func (s *state) extend(l *lease, now instant) {
	if l.begun == NotStarted {
		l.windowEnd = max(l.windowEnd, now.add(s.config.StartWindow))
	}
	l.expires = now.add(s.config.TTL)
	s.deadlines.set(l)
}

// versionAt is what a lease granted there says; empty while versions are not looked at.
func (s *state) versionAt(b *backend) Version {
	if s.published == "" {
		return ""
	}
	return b.version()
}

func (s *state) grant(l *lease) Grant {
	return Grant{Claim: l.claim(s.pool), URL: l.at.URL, TTL: s.config.TTL, StartWindow: s.config.StartWindow}
}
