package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// threats is the page whose table names a test in each row.
const threats = "docs/security.md"

var (
	// named are the names of tests and of their files in the last column, quoted the texts of specs.
	named  = regexp.MustCompile("`([A-Za-z0-9_]+(?:\\.go)?)`")
	quoted = regexp.MustCompile(`"([^"]+)"`)
)

func TestEveryThreatNamesATestThatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, threats))
	if err != nil {
		t.Fatal(err)
	}
	all, files := tests(t)
	rows := rowsOf(string(text), "| who | could reach |")
	if len(rows) < 10 {
		t.Fatalf("the table of threats has %d rows", len(rows))
	}
	for _, row := range rows {
		who, column := row[0], row[len(row)-1]
		if !named.MatchString(column) && !quoted.MatchString(column) {
			t.Errorf("%s: no test is named", who)
		}
		for _, match := range named.FindAllStringSubmatch(column, -1) {
			if name := match[1]; !files[name] && !strings.Contains(all, "func "+name+"(") {
				t.Errorf("%s: there is no test %s", who, name)
			}
		}
		for _, match := range quoted.FindAllStringSubmatch(column, -1) {
			if !strings.Contains(all, `"`+match[1]+`"`) {
				t.Errorf("%s: there is no spec %q", who, match[1])
			}
		}
	}
}

// rowsOf are the cells of the table that has this head.
func rowsOf(page, head string) [][]string {
	var out [][]string
	_, rest, _ := strings.Cut(page, head)
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			return out
		case !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "|---"):
			continue // what is left of the head, and the line below it
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out
}

// tests are the texts of all test files one behind the other, and their names.
func tests(t *testing.T) (text string, files map[string]bool) {
	t.Helper()
	var all strings.Builder
	files = map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(entry.Name(), "_test.go"):
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[entry.Name()] = true
			all.Write(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String(), files
}
