package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

func TestOptionsRefuseWhatCannotBeShown(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // part of the complaint
	}{
		"an unknown fault":                   {[]string{"-plant", "typo"}, "-plant"},
		"a negative limit":                   {[]string{"-limit", "-1"}, "-limit"},
		"too few engines for the story":      {[]string{"-engines", "2"}, "-engines"},
		"a part that does not exist":         {[]string{"-only", "finale"}, "-only"},
		"an argument that belongs to nobody": {[]string{"trace.csv"}, "trace.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(c.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("parse gave %v, want a complaint about %s", err, c.want)
			}
		})
	}
}

func TestBundledWorkloadHasRoomForTheStory(t *testing.T) {
	sessions, err := options{}.sessions()
	if err != nil {
		t.Fatal(err)
	}
	if n := workload.Requests(sessions); n < 10000 {
		t.Errorf("the bundled workload has %d requests, which are over before the story is", n)
	}
}

func TestLimitIsTheNumberOfRequests(t *testing.T) {
	sessions, err := options{limit: 250}.sessions()
	if err != nil {
		t.Fatal(err)
	}
	if n := workload.Requests(sessions); n != 250 {
		t.Errorf("the bundled workload was cut to %d requests, want 250", n)
	}
}

func TestTraceIsReadFromItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.csv")
	text := "arrival_ms,session,turn,input_tokens,output_tokens\n0,a,0,10,5\n7,b,0,20,6\n9,a,1,30,7\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sessions, err := options{trace: path, limit: 2}.sessions()
	if err != nil {
		t.Fatal(err)
	}
	if len(sessions) != 2 || workload.Requests(sessions) != 2 {
		t.Errorf("read %d requests in %d sessions, want the first two", workload.Requests(sessions), len(sessions))
	}
}
