package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// events are those about the pool that were recorded, or recorded again, since the story began.
func (s *scene) events(ctx context.Context) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := s.kube.List(ctx, &list, client.InNamespace(poolNamespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool {
		return event.Regarding.Name != poolName || lastSeen(&event).Before(s.began)
	}), nil
}

func lastSeen(event *eventsv1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return event.EventTime.Time
}

// tells waits until an event of this story has a reason, for each of what it is about: a word of its note.
// A recorder writes that something happened a second time, and only half an hour later that it did a third
// time: no story asks for that.
func (s *scene) tells(ctx context.Context, reason string, about ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		events, err := s.events(ctx)
		if err != nil {
			return err
		}
		for _, word := range about {
			if !slices.ContainsFunc(events, func(event eventsv1.Event) bool {
				return event.Reason == reason && slices.Contains(words(event.Note), word)
			}) {
				return fmt.Errorf("no event %s is about %s; there are %s", reason, word, brief(events))
			}
		}
		return nil
	}).WithTimeout(time.Minute).Should(Succeed())
}

// words are those of a note, without the marks that end them.
func words(note string) []string {
	return strings.FieldsFunc(note, func(r rune) bool { return strings.ContainsRune(" :,", r) })
}

// brief is how often each reason was told.
func brief(events []eventsv1.Event) string {
	count := map[string]int{}
	for _, event := range events {
		count[event.Reason]++
	}
	var list []string
	for _, reason := range names(count) {
		list = append(list, fmt.Sprintf("%s %d", reason, count[reason]))
	}
	return strings.Join(list, ", ")
}
