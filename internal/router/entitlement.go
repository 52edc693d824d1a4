package router

import (
	"errors"
	"slices"
)

// SubjectKind says what a subject's name is the name of.
type SubjectKind string

// The kinds of subjects.
const (
	// SubjectUser is one caller.
	SubjectUser SubjectKind = "User"
	// SubjectGroup is every caller of a group.
	SubjectGroup SubjectKind = "Group"
)

// Subject is whom a sender is for.
type Subject struct {
	Kind SubjectKind
	Name string
}

// Caller is who makes a call, as far as entitlement to senders goes.
type Caller struct {
	User   string
	Groups []string
}

// is reports whether the caller is the subject, or of its group.
func (c Caller) is(s Subject) bool {
	switch s.Kind {
	case SubjectUser:
		return c.User == s.Name
	case SubjectGroup:
		return slices.Contains(c.Groups, s.Name)
	}
	return false
}

// Rights names the subjects that a sender has at a moment. Other subjects have another name, so that whoever
// was judged by those of before can be told from whoever is judged by those of now.
type Rights int64

const (
	// RightsUnasked: nobody judges callers.
	RightsUnasked Rights = iota
	// rightsUndeclared: the spec does not name the sender.
	rightsUndeclared
)

// ErrRightsChanged is what a request is answered whose caller was judged by subjects that its sender does
// not have any more. It is no refusal: the caller is to be judged again.
var ErrRightsChanged = errors.New("the sender's subjects have changed since the caller was judged")

// Rights names the subjects of a sender. Whoever judges a caller reads it before, and passes it on with the
// request: the step that grants compares, so that nobody is granted by rights that were taken away (R7).
func (t *Table) Rights(sender SenderName) Rights {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.state.senders[sender]; v != nil && v.declared {
		return v.rights
	}
	return rightsUndeclared
}

// changeRights gives the rights of a sender another name if its subjects become others.
func (s *state) changeRights(v *sender, to []Subject) {
	if v.rights != RightsUnasked && slices.Equal(v.Subjects, to) {
		return
	}
	s.rights = max(s.rights, rightsUndeclared) + 1
	v.rights = s.rights
}

// Entitled refuses a caller whom the spec does not let use the sender (R7). A sender that the spec does
// not name is left to the call itself to refuse.
func (t *Table) Entitled(sender SenderName, c Caller) error {
	t.mu.Lock()
	var subjects []Subject
	if v := t.state.senders[sender]; v != nil && v.declared {
		subjects = v.Subjects // replaced whole by the next fleet, never written to
	}
	t.mu.Unlock()
	if len(subjects) == 0 || slices.ContainsFunc(subjects, c.is) {
		return nil
	}
	return refuse(ReasonSessionForbidden, "sender", "spec.senders has subjects for this sender, and the caller is none of them")
}
