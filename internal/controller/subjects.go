package controller

import (
	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// subjectsOf lists the subjects of a sender in the router's words: a service account is the user that
// its tokens speak for.
func subjectsOf(list []v1alpha1.SenderSubject, namespace string) []router.Subject {
	var subjects []router.Subject
	for _, entry := range list {
		switch entry.Kind {
		case v1alpha1.SubjectServiceAccount:
			home := entry.Namespace
			if home == "" {
				home = namespace
			}
			subjects = append(subjects, router.Subject{Kind: router.SubjectUser, Name: "system:serviceaccount:" + home + ":" + entry.Name})
		case v1alpha1.SubjectGroup:
			subjects = append(subjects, router.Subject{Kind: router.SubjectGroup, Name: entry.Name})
		case v1alpha1.SubjectUser:
			subjects = append(subjects, router.Subject{Kind: router.SubjectUser, Name: entry.Name})
		}
	}
	return subjects
}
