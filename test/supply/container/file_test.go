package container

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// instruction is one line of the Containerfile.
type instruction struct {
	word      string
	arguments string
}

// stages reads the Containerfile: every stage begins with its FROM.
func stages(t *testing.T) [][]instruction {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]instruction
	for line := range strings.Lines(string(text)) {
		word, arguments, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found || strings.HasPrefix(word, "#") {
			continue
		}
		if word == "FROM" {
			all = append(all, nil)
		}
		if len(all) == 0 {
			t.Fatalf("%s comes before any FROM", word)
		}
		all[len(all)-1] = append(all[len(all)-1], instruction{word, arguments})
	}
	if len(all) != 2 {
		t.Fatalf("there are %d stages, want the build's and the image's", len(all))
	}
	return all
}

// only returns the arguments of the one instruction with that word.
func only(t *testing.T, stage []instruction, word string) string {
	t.Helper()
	var found []string
	for _, i := range stage {
		if i.word == word {
			found = append(found, i.arguments)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d instructions %s, want one", len(found), word)
	}
	return found[0]
}

// carryOut does what the build's stage says, in a folder that stands for the stage's root, and returns it.
func carryOut(t *testing.T, stage []instruction) string {
	t.Helper()
	place := t.TempDir()
	work := filepath.Join(place, "src")
	if got := only(t, stage, "WORKDIR"); got != "/src" {
		t.Fatalf("the stage works in %s", got)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, i := range stage {
		switch i.word {
		case "COPY":
			fields := strings.Fields(i.arguments)
			for _, from := range fields[:len(fields)-1] {
				copyInto(t, from, filepath.Join(work, strings.TrimSuffix(fields[len(fields)-1], "/")))
			}
		case "RUN":
			if i.arguments == "go mod download" {
				continue // the modules that are needed are here, or this test would not run
			}
			shell := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(i.arguments, "-o /", "-o "+place+"/"))
			shell.Dir = work
			if out, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", i.arguments, err, out)
			}
		}
	}
	return place
}

// copyInto copies a file into a folder, or a folder onto one.
func copyInto(t *testing.T, from, to string) {
	t.Helper()
	from = filepath.Join(root, from)
	what, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if what.IsDir() {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, filepath.Base(from)), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheImageStartsAStaticProgramThatItsFirstStageBuilds(t *testing.T) {
	all := stages(t)
	build, image := all[0], all[1]
	place := carryOut(t, build)
	if from := only(t, image, "FROM"); from != "scratch" {
		t.Errorf("the image is made from %s: it has more in it than the program", from)
	}
	copied := strings.Fields(only(t, image, "COPY"))
	if len(copied) != 3 || copied[0] != "--from=build" {
		t.Fatalf("the image copies %v, want a program of the first stage", copied)
	}
	var entry []string
	if err := json.Unmarshal([]byte(only(t, image, "ENTRYPOINT")), &entry); err != nil || len(entry) != 1 || entry[0] != copied[2] {
		t.Errorf("the image starts %v (%v), and holds %s", entry, err, copied[2])
	}
	program, err := elf.Open(filepath.Join(place, copied[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Error("the program needs a linker or libraries, which the image does not have")
		}
	}
	// The kubelet cannot tell of a name whether it is root's.
	if user := only(t, image, "USER"); !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Errorf("the image runs as %q, which is no number other than root's", user)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(place, copied[1]), "--help").CombinedOutput(); !strings.Contains(string(out), "-leader-elect") {
		t.Errorf("the program is not the manager: %v\n%.300s", err, out)
	}
}

func TestTheImageIsBuiltWithAToolchainThatIsNewEnough(t *testing.T) {
	from := strings.Fields(only(t, stages(t)[0], "FROM"))[0]
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+)\.(\d+)`).FindStringSubmatch(string(text))
	found := regexp.MustCompile(`golang:(\d+)\.(\d+)$`).FindStringSubmatch(from)
	if wanted == nil || found == nil {
		t.Fatalf("go.mod says %v, the first stage is from %s", wanted, from)
	}
	if fmt.Sprint(wanted[1:]) != fmt.Sprint(found[1:]) {
		t.Errorf("go.mod asks for Go %s.%s, the first stage brings %s.%s", wanted[1], wanted[2], found[1], found[2])
	}
}
