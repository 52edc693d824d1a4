package proxy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/jsonscan"
)

func TestASpoolGivesBackWhatWasWrittenAndLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := &spool{store: newStore(Limits{}.withDefaults()), dir: dir, max: 1 << 20}
		defer s.free()
		want := bytes.Repeat([]byte("0123456789"), rapid.IntRange(0, 20_000).Draw(t, "tens"))
		for rest := want; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if len(s.mem) > inMemory {
			t.Fatalf("%d bytes in memory", len(s.mem))
		}
		from := rapid.IntRange(0, len(want)).Draw(t, "from")
		to := rapid.IntRange(from, len(want)).Draw(t, "to")
		got, err := io.ReadAll(s.part(int64(from), int64(to)))
		if err != nil || !bytes.Equal(got, want[from:to]) {
			t.Fatalf("%d bytes for %d: %v", len(got), to-from, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 0 {
			t.Fatalf("%v, %v", left, err)
		}
	})
}

func TestASpoolHasAnEnd(t *testing.T) {
	s := &spool{store: newStore(Limits{}.withDefaults()), dir: t.TempDir(), max: 100}
	if _, err := s.Write(make([]byte, 101)); !errors.Is(err, errBodyTooLarge) {
		t.Errorf("got %v", err)
	}
	full := &spool{store: newStore(Limits{}.withDefaults()), dir: t.TempDir() + "/missing", max: 1 << 20}
	if _, err := full.Write(make([]byte, inMemory+1)); err == nil {
		t.Error("a file in a folder that is not there")
	}
}

func TestBodiesShareTheRoomThereIsAndGiveItBack(t *testing.T) {
	shared := newStore(Limits{SpoolMemory: inMemory, SpoolBytes: 100})
	body := func() *spool { return &spool{store: shared, dir: t.TempDir(), max: 1 << 20} }
	first, second := body(), body()
	want := bytes.Repeat([]byte("0123456789"), 10)
	if _, err := first.Write(make([]byte, inMemory)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write(want); err != nil || len(second.mem) != 0 {
		t.Fatalf("with the memory full: %d bytes in memory, %v", len(second.mem), err)
	}
	if got, err := io.ReadAll(second.part(0, second.size)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := first.Write([]byte("x")); !errors.Is(err, errNoRoom) {
		t.Errorf("with the files full: %v", err)
	}
	second.free()
	second.free()
	if _, err := first.Write(want); err != nil {
		t.Errorf("after the end of another: %v", err)
	}
	first.free()
	if m, f := shared.memory.taken.Load(), shared.files.taken.Load(); m != 0 || f != 0 {
		t.Errorf("%d bytes of memory and %d of files stay taken", m, f)
	}
}

// drawBody draws a request with members before and behind its rids.
func drawBody(t *rapid.T) []byte {
	member := rapid.SampledFrom([]string{`"text":"a\"b"`, `"n":2`, `"x":[1,{"rid":"inner"}]`, `"rid":"mine"`, `"rid":null`, ` "rid" : ["a","b"] `})
	members := rapid.SliceOfN(member, 0, 6).Draw(t, "members")
	padding := rapid.SampledFrom([]int{0, inMemory}).Draw(t, "padding")
	out := []byte("{")
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	out = append(out, bytes.Repeat([]byte(" "), padding)...)
	return append(out, '}')
}

func TestEveryRIDAtTheTopIsReplacedInMemoryAndOnFileAlike(t *testing.T) {
	dir := t.TempDir()
	generate := routes()["/generate"]
	rapid.Check(t, func(t *rapid.T) {
		body := drawBody(t)
		s := &spool{store: newStore(Limits{}.withDefaults()), dir: dir, max: 1 << 20}
		defer s.free()
		f := newFields(generate)
		scan := jsonscan.New(f)
		for _, w := range []io.Writer{s, scan} {
			if _, err := w.Write(body); err != nil {
				t.Fatal(err)
			}
		}
		r, length := withRID(s, f, "LEASE")
		got, err := io.ReadAll(r)
		if err != nil || int64(len(got)) != length {
			t.Fatalf("%d bytes, %d announced: %v", len(got), length, err)
		}
		again := newFields(generate)
		rescan := jsonscan.New(again)
		if _, err := rescan.Write(got); err != nil || rescan.Close() != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if len(again.rids) != max(1, len(f.rids)) {
			t.Fatalf("%s: %d rids", got, len(again.rids))
		}
		for _, at := range again.rids {
			if text := string(got[at.from:at.to]); text != `"LEASE"` {
				t.Fatalf("%s: rid %s", got, text)
			}
		}
	})
}

func TestThePrefixTableForgetsWhatIsLongestUnused(t *testing.T) {
	table := newPrefixes(8)
	body := &spool{store: newStore(Limits{}.withDefaults()), max: 1 << 20}
	if _, err := body.Write(bytes.Repeat([]byte("ab"), 8*prefixBlock)); err != nil {
		t.Fatal(err)
	}
	n := 0
	session := func(from int64) router.SessionID {
		id, _ := table.session(place{sender: "train"}, &fields{prompt: span{from, from + 4*prefixBlock}}, body, func() router.SessionID {
			n++
			return router.SessionID(rune('a' + n))
		})
		return id
	}
	first := session(0)
	if session(0) != first {
		t.Error("the same prompt has another session")
	}
	if session(1) == first {
		t.Error("another prompt has the same session")
	}
	session(0)
	if _, err := body.Write([]byte("c")); err != nil {
		t.Fatal(err)
	}
	other, _ := table.session(place{sender: "eval"}, &fields{prompt: span{0, 4 * prefixBlock}}, body, func() router.SessionID { return "eval" })
	if other != "eval" {
		t.Error("senders share a session")
	}
	if len(table.blocks) > 8 || table.recent.Len() != len(table.blocks) {
		t.Errorf("%d blocks, %d in the list", len(table.blocks), table.recent.Len())
	}
	if session(0) != first {
		t.Error("the latest used was forgotten")
	}
	if session(1) == first {
		t.Error("a forgotten prompt came back as another's")
	}
}
