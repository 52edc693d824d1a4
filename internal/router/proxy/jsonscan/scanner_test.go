package jsonscan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router/proxy/jsonscan"
)

// diary writes down what a scanner tells.
type diary struct {
	skip  string // a member of the document that is not entered
	lines []string
	at    map[string][2]int64
}

func (d *diary) Enter(p *jsonscan.Path) jsonscan.Interest {
	if d.skip != "" && p.Is(d.skip) {
		return jsonscan.Skip
	}
	return jsonscan.Look
}

func (d *diary) Visit(p *jsonscan.Path, v jsonscan.Value) {
	where := "$"
	for i := 1; i <= p.Depth(); i++ {
		if k := p.Key(i); k != "" {
			where += "." + k
		} else {
			where += fmt.Sprintf("[%d]", p.Index(i))
		}
	}
	d.lines = append(d.lines, fmt.Sprintf("%s kind=%d text=%s count=%d first=%d", where, v.Kind, v.Text, v.Count, v.First))
	if d.at == nil {
		d.at = map[string][2]int64{}
	}
	d.at[where] = [2]int64{v.Start, v.End}
}

func scan(doc string, piece int, d *diary) error {
	s := jsonscan.New(d)
	for rest := []byte(doc); len(rest) > 0; {
		n := min(piece, len(rest))
		if _, err := s.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return s.Close()
}

func TestScannerTellsOfEachValueWhereverTheDocumentIsCut(t *testing.T) {
	const doc = ` {"session_id" : "a\u0062\"c", "n":2,"prompt":[[1,2],[3]], "o":{"k":null,"d":{"e":{"f":[{"g":[1]}]}}}, "e":{},"l":[] } `
	want := []string{
		`$.session_id kind=1 text=ab"c count=0 first=0`,
		`$.n kind=2 text=2 count=0 first=0`,
		`$.prompt[0][0] kind=2 text=1 count=0 first=0`,
		`$.prompt[0][1] kind=2 text=2 count=0 first=0`,
		`$.prompt[0] kind=5 text= count=2 first=2`,
		`$.prompt[1][0] kind=2 text=3 count=0 first=0`,
		`$.prompt[1] kind=5 text= count=1 first=2`,
		`$.prompt kind=5 text= count=2 first=5`,
		`$.o.k kind=3 text=null count=0 first=0`,
		`$.o.d.e.f[0] kind=4 text= count=0 first=0`,
		`$.o.d.e.f kind=5 text= count=1 first=4`,
		`$.o.d.e kind=4 text= count=1 first=0`,
		`$.o.d kind=4 text= count=1 first=0`,
		`$.o kind=4 text= count=2 first=0`,
		`$.e kind=4 text= count=0 first=0`,
		`$.l kind=5 text= count=0 first=0`,
		`$ kind=4 text= count=6 first=0`,
	}
	for piece := 1; piece <= len(doc); piece++ {
		var d diary
		if err := scan(doc, piece, &d); err != nil {
			t.Fatalf("in pieces of %d: %v", piece, err)
		}
		if diff := cmp.Diff(want, d.lines); diff != "" {
			t.Fatalf("in pieces of %d: %s", piece, diff)
		}
		for where, text := range map[string]string{"$.n": "2", "$.prompt[1]": "[3]", "$.session_id": `"a\u0062\"c"`, "$.o.d.e.f[0]": `{"g":[1]}`} {
			if r := d.at[where]; doc[r[0]:r[1]] != text {
				t.Fatalf("in pieces of %d: %s is at %v, which is %s", piece, where, r, doc[r[0]:r[1]])
			}
		}
	}
}

func TestScannerRefusesWhatIsNotOneDocument(t *testing.T) {
	for name, doc := range map[string]string{
		"nothing":                     "",
		"only space":                  " \n",
		"two documents":               `{}{}`,
		"a bracket too many":          `{}]`,
		"an end that does not fit":    `{"a":1]`,
		"a value where a key belongs": `{1:2}`,
		"a missing colon":             `{"a" 1}`,
		"a missing comma":             `{"a":1 "b":2}`,
		"a comma before the end":      `{"a":1,}`,
		"a comma before an element":   `[,1]`,
		"two values":                  `[1 2]`,
		"a colon in a list":           `["a":1]`,
		"a string without end":        `{"a":"b`,
		"an object without end":       `{"a":{"b":1}`,
		"a byte order mark":           "\ufeff{}",
		"UTF-16":                      "{\x00}\x00",
		"a stray byte":                "{\x01}",
	} {
		t.Run(name, func(t *testing.T) {
			for piece := 1; piece <= max(1, len(doc)); piece++ {
				if err := scan(doc, piece, &diary{}); !errors.Is(err, jsonscan.ErrSyntax) {
					t.Fatalf("in pieces of %d: got %v", piece, err)
				}
			}
		})
	}
}

func TestScannerKeepsABoundedPartOfAText(t *testing.T) {
	long := strings.Repeat("x", 3*jsonscan.MaxText)
	var d diary
	if err := scan(`{"a":"`+long+`","b":"`+long[:jsonscan.MaxText]+`","c":`+strings.Repeat("1", 2*jsonscan.MaxText)+`}`, 100, &d); err != nil {
		t.Fatal(err)
	}
	for _, l := range d.lines[:3] {
		if len(l) > jsonscan.MaxText+64 {
			t.Errorf("%d bytes kept", len(l))
		}
	}
}

func TestScannerPassesOverWhatIsSkipped(t *testing.T) {
	d := diary{skip: "messages"}
	if err := scan(`{"messages":[{"a":"]\"}"},[[]]],"n":3}`, 3, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.lines) != 3 || !strings.HasPrefix(d.lines[1], "$.n kind=2 text=3") {
		t.Errorf("got %q", d.lines)
	}
}

// drawJSON draws a document that the standard encoder writes.
func drawJSON(t *rapid.T, depth int) any {
	if depth == 0 {
		return rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f })).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		out := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			out[rapid.String().Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return out
	case 1:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			out = append(out, drawJSON(t, depth-1))
		}
		return out
	default:
		return drawJSON(t, 0)
	}
}

func TestScannerAcceptsWhatTheStandardEncoderWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawJSON(t, 7)
		doc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var d diary
		if err := scan(string(doc), rapid.IntRange(1, len(doc)).Draw(t, "piece"), &d); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if r := d.at["$"]; r != [2]int64{0, int64(len(doc))} {
			t.Fatalf("%s: document at %v", doc, r)
		}
	})
}

func FuzzScannerAcceptsEveryValidDocument(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"\\"}]}`, `[[[[[[[1]]]]]]]`, `"x"`, `-1e5`, `{"":{}}`, ` null `} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, doc []byte, piece int) {
		if piece < 1 || !json.Valid(doc) {
			return
		}
		var whole, parts diary
		if err := scan(string(doc), len(doc), &whole); err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
		if err := scan(string(doc), piece, &parts); err != nil || !cmp.Equal(whole.lines, parts.lines) {
			t.Fatalf("%q in pieces of %d: %v", doc, piece, err)
		}
	})
}

func BenchmarkScannerPassesAnImage(b *testing.B) {
	doc := []byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("iVBORw0KGgo", 100_000) + `"}}]}],"n":1}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		s := jsonscan.New(&diary{skip: "messages"})
		for rest := doc; len(rest) > 0; rest = rest[min(len(rest), 32<<10):] {
			if _, err := s.Write(rest[:min(len(rest), 32<<10)]); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
