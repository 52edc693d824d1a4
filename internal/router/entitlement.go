package router

import "slices"

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
