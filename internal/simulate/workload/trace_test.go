package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const header = "arrival_ms,session,turn,input_tokens,output_tokens\n"

func TestReadCSVPutsTurnsIntoSessions(t *testing.T) {
	got, err := ReadCSV(strings.NewReader(header+
		"1000,a,0,100,10\n1500,b,0,7,1\n3000,a,1,130,5\n3000,a,2,135,1\n3500,a,3,50,2\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []Session{
		{ID: "a", Arrival: time.Second, Turns: []Turn{
			{Prompt: 100, Fresh: 100, Output: 10},
			{Prompt: 130, Fresh: 20, Output: 5, NotBefore: 2 * time.Second},
			{Prompt: 135, Fresh: 1, Output: 1, NotBefore: 2 * time.Second},
			{Prompt: 50, Fresh: 1, Output: 2, NotBefore: 2500 * time.Millisecond},
		}},
		{ID: "b", Arrival: 1500 * time.Millisecond, Turns: []Turn{{Prompt: 7, Fresh: 7, Output: 1}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadMooncakeFollowsSessionsByTheirBlocks(t *testing.T) {
	got, err := ReadMooncake(strings.NewReader(strings.Join([]string{
		`{"timestamp": 0, "input_length": 1300, "output_length": 9, "hash_ids": [1, 2, 3]}`,
		`{"timestamp": 10.5, "input_length": 1100, "output_length": 1, "hash_ids": [1, 4, 5], "x": {}}`,
		`{"timestamp": 20, "input_length": 2000, "output_length": 3, "hash_ids": [1, 2, 6, 7]}`,
		`{"timestamp": 30, "input_length": 600, "output_length": 3, "hash_ids": [1, 8]}`,
		`{"timestamp": 40, "input_length": 2560, "output_length": 4, "hash_ids": [1, 2, 6, 9, 10]}`,
		`{"timestamp": 50, "input_length": 1300, "output_length": 4, "hash_ids": [1, 2, 11]}`,
	}, "\n")), 0)
	if err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	want := []Session{
		{ID: "0", Turns: []Turn{
			{Prompt: 1300, Fresh: 1300, Output: 9},
			{Prompt: 2000, Fresh: 2000 - 1024, Output: 3, NotBefore: 20 * ms},
			{Prompt: 2560, Fresh: 2560 - 1536, Output: 4, NotBefore: 40 * ms},
		}},
		{ID: "1", Arrival: 10*ms + ms/2, Turns: []Turn{{Prompt: 1100, Fresh: 1100, Output: 1}}},
		{ID: "2", Arrival: 30 * ms, Turns: []Turn{{Prompt: 600, Fresh: 600, Output: 3}}},
		{ID: "3", Arrival: 50 * ms, Turns: []Turn{{Prompt: 1300, Fresh: 1300, Output: 4}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLimitReadsOnlySoManyRequests(t *testing.T) {
	csv := header + "0,a,0,1,1\n1,b,0,1,1\n2,a,1,9,1\nnot,a,valid,line,!\n"
	jsonl := strings.Repeat(`{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}`+"\n", 3) + "{"
	for limit := 1; limit <= 3; limit++ {
		fromCSV, err := ReadCSV(strings.NewReader(csv), limit)
		if err != nil || Requests(fromCSV) != limit {
			t.Errorf("CSV, limit %d: %d requests, %v", limit, Requests(fromCSV), err)
		}
		fromJSON, err := ReadMooncake(strings.NewReader(jsonl), limit)
		if err != nil || Requests(fromJSON) != limit {
			t.Errorf("JSONL, limit %d: %d requests, %v", limit, Requests(fromJSON), err)
		}
	}
	if _, err := ReadCSV(strings.NewReader(csv), 0); err == nil {
		t.Error("the bad line is skipped without a limit")
	}
	if _, err := ReadMooncake(strings.NewReader(jsonl), 0); err == nil {
		t.Error("the bad object is skipped without a limit")
	}
}

func TestReadCSVNamesLineAndColumn(t *testing.T) {
	for name, bad := range map[string]struct{ input, want string }{
		"an empty file":                {"", "line 1: the file is empty"},
		"another header":               {"a,b,c,d,e\n", "line 1: the header is"},
		"columns missing":              {"arrival_ms,session\n", "line 1: wrong number of fields"},
		"only a header":                {header, "line 1: no request follows"},
		"a field too few":              {header + "0,a,0,1\n", "line 2: wrong number of fields"},
		"an arrival that is no number": {header + "0,a,0,1,1\nx,b,0,1,1\n", `line 3, column arrival_ms: "x" is not a whole number`},
		"a negative arrival":           {header + "-1,a,0,1,1\n", "line 2, column arrival_ms: -1 is not in 0.."},
		"an id with a slash":           {header + "0,a/b,0,1,1\n", `line 2, column session: "a/b" is not an id`},
		"an empty id":                  {header + "0,,0,1,1\n", `line 2, column session: ""`},
		"a turn left out":              {header + "0,a,0,1,1\n1,a,2,1,1\n", "line 3, column turn: turn 2 of session a, where 1 is due"},
		"a turn twice":                 {header + "0,a,0,1,1\n1,a,0,1,1\n", "line 3, column turn: turn 0"},
		"no input":                     {header + "0,a,0,0,1\n", "line 2, column input_tokens: 0 is not in 1.."},
		"a fraction of a token":        {header + "0,a,0,1,1.5\n", `line 2, column output_tokens: "1.5"`},
		"a number beyond 64 bits":      {header + "0,a,0,1,99999999999999999999\n", "line 2, column output_tokens"},
		"a session back in time":       {header + "5,a,0,1,1\n4,a,1,1,1\n", "line 3, column arrival_ms: goes back in time"},
		"a quote that never closes":    {header + "0,\"a,0,1,1\n", "line 2: extraneous or missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadCSV(strings.NewReader(bad.input), 0)
			checkInputError(t, err, bad.want)
		})
	}
}

func TestReadMooncakeNamesLineAndColumn(t *testing.T) {
	good := `{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}` + "\n"
	for name, bad := range map[string]struct{ input, want string }{
		"an empty file":            {"", "line 1: no request follows"},
		"a blank line":             {good + "\n" + good, "line 2: unexpected end of JSON input"},
		"no JSON":                  {good + "hello", "line 2: invalid character"},
		"no time stamp":            {`{"input_length":1,"output_length":1,"hash_ids":[]}`, "line 1, column timestamp: is missing"},
		"a negative time stamp":    {`{"timestamp":-1,"input_length":1,"output_length":1,"hash_ids":[]}`, "line 1, column timestamp: -1 is not in"},
		"a time beyond all floats": {`{"timestamp":1e999,"input_length":1,"output_length":1,"hash_ids":[]}`, "line 1, column timestamp: 1e999"},
		"no input length":          {`{"timestamp":1,"output_length":1,"hash_ids":[]}`, "line 1, column input_length: is missing"},
		"an output of 0":           {`{"timestamp":1,"input_length":1,"output_length":0,"hash_ids":[]}`, "line 1, column output_length: 0 is not in 1.."},
		"a length in words":        {`{"timestamp":1,"input_length":"long"}`, "line 1, column input_length: a JSON string where a int64 belongs"},
		"no hashes":                {`{"timestamp":1,"input_length":1,"output_length":1}`, "line 1, column hash_ids: is missing"},
		"a line of 9 MiB":          {good + strings.Repeat(" ", 9<<20), "line 2: longer than"},
		"a session back in time": {`{"timestamp":5,"input_length":512,"output_length":1,"hash_ids":[1]}` + "\n" +
			`{"timestamp":4,"input_length":512,"output_length":1,"hash_ids":[1]}`, "line 2, column timestamp: goes back in time"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadMooncake(strings.NewReader(bad.input), 0)
			checkInputError(t, err, bad.want)
		})
	}
}

func checkInputError(t *testing.T, err error, want string) {
	t.Helper()
	var input *InputError
	if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want an InputError that begins %q", err, want)
	}
}

func TestReadersPassOnWhatTheirSourceSays(t *testing.T) {
	broken := errors.New("the disk is gone")
	if _, err := ReadCSV(iotest.ErrReader(broken), 0); !errors.Is(err, broken) {
		t.Errorf("CSV: %v", err)
	}
	if _, err := ReadMooncake(iotest.ErrReader(broken), 0); !errors.Is(err, broken) {
		t.Errorf("JSONL: %v", err)
	}
}

func TestReadFileChoosesTheReaderByName(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.csv":   header + "0,a,0,1,1\n",
		"b.JSONL": `{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if sessions, err := ReadFile(path, 0); err != nil || len(sessions) != 1 {
			t.Errorf("%s: %v, %v", name, sessions, err)
		}
	}
	if _, err := ReadFile("trace.txt", 0); !errors.Is(err, ErrUnknownFormat) {
		t.Errorf("trace.txt: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none.csv"), 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none.csv: %v", err)
	}
}

// TestReadFileReadsTheConversationTrace needs the trace that BERTHMASTER_TRACES, a
// directory, holds; it is too large for the repository.
func TestReadFileReadsTheConversationTrace(t *testing.T) {
	dir := os.Getenv("BERTHMASTER_TRACES")
	path := filepath.Join(dir, "mooncake-conversation.csv")
	if _, err := os.Stat(path); dir == "" || err != nil {
		t.Skip("set BERTHMASTER_TRACES to a directory with mooncake-conversation.csv to run this test")
	}
	sessions, err := ReadFile(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkWellFormed(t, sessions)
	if len(sessions) != 7373 || Requests(sessions) != 12031 {
		t.Errorf("%d requests in %d sessions, want 12031 in 7373", Requests(sessions), len(sessions))
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add(header + "0,a,0,100,10\n1,a,1,120,3\n")
	f.Add(header + "0,\"a\"\"\",0,100,10\n")
	f.Add("arrival_ms\n")
	f.Fuzz(func(t *testing.T, text string) {
		sessions, err := ReadCSV(strings.NewReader(text), 0)
		if err != nil {
			return
		}
		checkWellFormed(t, sessions)
		again, err := ReadCSV(strings.NewReader(writeCSV(sessions)), 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sessions, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// writeCSV is the inverse of ReadCSV, session by session.
func writeCSV(sessions []Session) string {
	var text strings.Builder
	text.WriteString(header)
	for _, s := range sessions {
		for n, turn := range s.Turns {
			fmt.Fprintf(&text, "%d,%s,%d,%d,%d\n", (s.Arrival + turn.NotBefore).Milliseconds(), s.ID, n, turn.Prompt, turn.Output)
		}
	}
	return text.String()
}

func FuzzReadMooncake(f *testing.F) {
	f.Add(`{"timestamp":0,"input_length":600,"output_length":1,"hash_ids":[1,2]}`)
	f.Add(`{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]}` + "\n" +
		`{"timestamp":1,"input_length":1024,"output_length":1,"hash_ids":[1,1]}`)
	f.Add(`{"timestamp":-1}`)
	f.Fuzz(func(t *testing.T, text string) {
		sessions, err := ReadMooncake(strings.NewReader(text), 0)
		if err != nil {
			return
		}
		checkWellFormed(t, sessions)
		lines := 0
		for line := range strings.Lines(text) {
			if line != "" {
				lines++
			}
		}
		if Requests(sessions) != lines {
			t.Fatalf("%d requests of %d lines", Requests(sessions), lines)
		}
	})
}
