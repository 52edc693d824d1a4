package main

import (
	"strings"
	"testing"
)

func TestThePortOfLeasesHasRoomWithinWhatTheProcessMayOpen(t *testing.T) {
	for what, c := range map[string]struct {
		asked int
		files uint64
		want  int
		err   string
	}{
		"nobody says, and there is plenty":          {0, 1 << 20, 20480, ""},
		"nobody says, and there is not much":        {0, 20000, 10000, ""},
		"nobody says, and there is next to nothing": {0, 1, 1, ""},
		"somebody says":                             {15000, 20000, 15000, ""},
		"somebody says more than there is":          {19000, 20000, 0, "RLIMIT_NOFILE"},
		"somebody says nonsense":                    {-1, 20000, 0, "negative"},
	} {
		got, err := (&portOptions{connections: c.asked}).room(c.files)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d, %v, want %d, %q", what, got, err, c.want, c.err)
		}
	}
}
