package execlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var origin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(second int) time.Time { return origin.Add(time.Duration(second) * time.Second) }

func start(second int, rid string) Record {
	return Record{Time: at(second), Event: Start, Backend: "b", Life: "1", Session: "s", Turn: "1", RID: rid}
}

func finish(second int, rid string, o Outcome) Record {
	r := start(second, rid)
	r.Event, r.Outcome = Finish, o
	return r
}

func dead(second int, rid string) ClientRecord {
	return ClientRecord{Time: at(second), Session: "s", Turn: "1", RID: rid, Event: Dead}
}

func inSession(r Record, session string) Record { r.Session = session; return r }
func inSample(r Record, sample int) Record      { r.Sample = sample; return r }
func inLife(r Record, life string) Record       { r.Life = life; return r }

func TestASecondStartPassesOnlyAfterDeadAndAtMostAborted(t *testing.T) {
	for name, c := range map[string]struct {
		records []Record
		clients []ClientRecord
		want    []Reason
	}{
		"one execution": {records: []Record{start(1, "a"), finish(2, "a", Finished)}},
		"a replay after success": {
			records: []Record{start(1, "a"), finish(2, "a", Finished), start(3, "b"), finish(4, "b", Finished)},
			want:    []Reason{NotAborted},
		},
		"a replay after success that somebody called dead": {
			records: []Record{start(1, "a"), finish(2, "a", Finished), start(4, "b")},
			clients: []ClientRecord{dead(3, "a")}, want: []Reason{NotAborted},
		},
		"aborted and dead before": {
			records: []Record{start(1, "a"), finish(2, "a", Aborted), start(4, "b"), finish(5, "b", Finished)},
			clients: []ClientRecord{dead(3, "a")},
		},
		"aborted but never dead": {
			records: []Record{start(1, "a"), finish(2, "a", Aborted), start(4, "b")}, want: []Reason{NotDead},
		},
		"dead only after the second start": {
			records: []Record{start(1, "a"), finish(2, "a", Aborted), start(4, "b")},
			clients: []ClientRecord{dead(5, "a")}, want: []Reason{NotDead},
		},
		"killed without a finish, and dead before": {
			records: []Record{start(1, "a"), inLife(start(4, "b"), "2")}, clients: []ClientRecord{dead(3, "a")},
		},
		"killed without a finish, and nobody knows": {
			records: []Record{start(1, "a"), inLife(start(4, "b"), "2")}, want: []Reason{NotDead},
		},
		"dead, but it finished after the second start": {
			records: []Record{start(1, "a"), start(4, "b"), finish(6, "a", Finished)},
			clients: []ClientRecord{dead(3, "a")}, want: []Reason{NotAborted},
		},
		"a third start needs leave from both": {
			records: []Record{start(1, "a"), start(4, "b"), start(7, "c")},
			clients: []ClientRecord{dead(3, "a")}, want: []Reason{NotDead},
		},
		"the same rid twice": {
			records: []Record{start(1, "a"), finish(2, "a", Aborted), start(3, "a")}, want: []Reason{NotDead},
		},
		"lines out of order": {
			records: []Record{start(4, "b"), start(1, "a"), finish(2, "a", Aborted)},
			clients: []ClientRecord{dead(3, "a")},
		},
		"samples of one request": {records: []Record{start(1, "a"), inSample(start(1, "a"), 1)}},
		"nobody's session":       {records: []Record{inSession(start(1, "a"), ""), inSession(start(2, "b"), "")}},
		"two sessions":           {records: []Record{start(1, "a"), inSession(start(2, "b"), "other")}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Reason
			for _, v := range Check(c.records, c.clients).Violations {
				got = append(got, v.Reason)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReportCountsExecutionsPerTurnAndWhatNobodyReported(t *testing.T) {
	clients := []ClientRecord{{RID: "a", Event: Sent}, {RID: "b", Event: Sent}, {RID: "b", Event: Ambiguous}}
	got := Check([]Record{
		start(1, "a"), inSession(start(2, "b"), "t"), inSession(start(3, "c"), "u"), inSession(finish(4, "c", Finished), "u"),
	}, clients)
	if len(got.Turns) != 3 || got.Count(Finished) != 1 || got.Count(Unfinished) != 2 || got.Count(Aborted) != 0 {
		t.Errorf("three turns, one finished, two not: %+v", got)
	}
	if len(got.Unreported) != 1 || got.Unreported[0].RID != "a" {
		t.Errorf("only a is not reported: %+v", got.Unreported)
	}
}

func TestAppendedRecordsAreReadBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b"+Suffix)
	want := []Record{start(1, "a"), finish(2, "a", Finished)}
	for _, r := range want { // two lives
		w, err := Open(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(r), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestATornLineIsSkippedAndDoesNotSpoilTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b"+Suffix)
	if err := os.WriteFile(path, []byte(`{"time":"2026-01-02T03:04:05Z","event":"sta`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFiles(path); err != nil || len(got) != 0 {
		t.Errorf("a torn last line: %v, %v", got, err)
	}
	w, err := Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(start(1, "a")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFiles(path); err != nil || len(got) != 1 || got[0].RID != "a" {
		t.Errorf("the line after the torn one: %v, %v", got, err)
	}
}

func TestALineThatIsNoRecordIsAnErrorThatNamesIt(t *testing.T) {
	_, err := Read(strings.NewReader("{\"event\":\"boot\"}\n{\"event\":7}\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}

func TestADirectoryWithoutLogsIsAnError(t *testing.T) {
	if _, err := ReadFiles(t.TempDir()); err == nil {
		t.Error("a check of nothing must not pass")
	}
}

// memory is a file that counts its syncs.
type memory struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	syncs int
}

func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buf.Write(p)
}

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.syncs++
	return nil
}

func (m *memory) Close() error { return nil }

func (m *memory) seen() (bytes, syncs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buf.Len(), m.syncs
}

func TestWriterSyncsAtItsIntervalAndOnlyWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		w := newWriter(m, time.Second)
		if err := w.Append(start(1, "a")); err != nil {
			t.Fatal(err)
		}
		if n, syncs := m.seen(); n == 0 || syncs != 0 {
			t.Errorf("written at once, synced later: %d bytes, %d syncs", n, syncs)
		}
		<-time.After(1500 * time.Millisecond) // of virtual time
		if _, syncs := m.seen(); syncs != 1 {
			t.Errorf("%d syncs after one interval", syncs)
		}
		<-time.After(5 * time.Second)
		if _, syncs := m.seen(); syncs != 1 {
			t.Errorf("%d syncs though nothing was new", syncs)
		}
		if err := errors.Join(w.Append(start(2, "b")), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, syncs := m.seen(); syncs != 2 {
			t.Errorf("%d syncs after Close", syncs)
		}
	})
}
