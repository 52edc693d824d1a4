package conformance

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// document is where the rules are.
const document = "../../docs/client-conformance.md"

func table(t *testing.T) []Scenario {
	t.Helper()
	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d scenarios", len(all))
	}
	return all
}

// ruleLine is a rule in the document: its number, its text, and its scenarios.
var (
	ruleLine = regexp.MustCompile(`(?m)^\*\*(C\d+)\*\* `)
	quoted   = regexp.MustCompile("`([a-z0-9]+(?:-[a-z0-9]+)+)`")
)

// rules reads the document: the scenarios that it names for each rule.
func rules(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	found := map[string][]string{}
	starts := ruleLine.FindAllStringSubmatchIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		rule := text[at[2]:at[3]]
		if _, twice := found[rule]; twice {
			t.Errorf("rule %s is there twice", rule)
		}
		found[rule] = []string{}
		_, list, named := strings.Cut(text[at[1]:end], "Scenarios:")
		if !named {
			t.Errorf("rule %s names no scenarios", rule)
		}
		for _, match := range quoted.FindAllStringSubmatch(list, -1) {
			found[rule] = append(found[rule], match[1])
		}
	}
	return found
}

func TestEveryRuleOfTheDocumentHasItsScenariosAndViceVersa(t *testing.T) {
	inDocument, inTable := rules(t), map[string][]string{}
	for _, s := range table(t) {
		if len(s.Rules) == 0 {
			t.Errorf("%s stands for no rule", s.Name)
		}
		for _, rule := range s.Rules {
			inTable[rule] = append(inTable[rule], s.Name)
		}
	}
	for rule, names := range inDocument {
		if len(names) == 0 {
			t.Errorf("rule %s has no scenario", rule)
		}
		slices.Sort(names)
		slices.Sort(inTable[rule])
		if !slices.Equal(names, inTable[rule]) {
			t.Errorf("rule %s: the document names %v, the table %v", rule, names, inTable[rule])
		}
	}
	for rule := range inTable {
		if _, ok := inDocument[rule]; !ok {
			t.Errorf("rule %s is not in the document", rule)
		}
	}
}

// TestWhatTheJudgeSaysIsARule finds the rules that the judge's laws name.
func TestWhatTheJudgeSaysIsARule(t *testing.T) {
	inDocument := rules(t)
	named := regexp.MustCompile(`"(C\d+)[:"]`)
	found := 0
	for _, file := range []string{"fakepool/laws.go", "fakepool/ledger.go", "fakepool/router.go", "fakepool/engine.go"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(raw), -1) {
			found++
			if _, ok := inDocument[match[1]]; !ok {
				t.Errorf("%s speaks of %s, which is not in the document", file, match[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d mentions of rules were found", found)
	}
}

func TestEveryScenarioIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	calls := []Call{Generate, Stream, Acquire, AwaitFate, EndSession, Pause}
	kinds := []string{"acquire", "renew", "release", "forgo", "end"}
	for _, s := range table(t) {
		t.Run(s.Name, func(t *testing.T) {
			if seen[s.Name] || !quoted.MatchString("`"+s.Name+"`") {
				t.Error("the name is taken, or is not words joined by hyphens")
			}
			seen[s.Name] = true
			if s.Says == "" || len(s.Do) == 0 {
				t.Error("it says or does nothing")
			}
			for _, step := range s.Do {
				if !slices.Contains(calls, step.Call) || step.Report["result"] == nil {
					t.Errorf("step %+v is no call, or demands no result", step)
				}
			}
			for kind, script := range s.Router {
				if !slices.Contains(kinds, kind) {
					t.Errorf("the router has no call %q", kind)
				}
				for _, a := range script {
					if !slices.Contains([]Fault{"", FaultReset, FaultHalf, FaultHang}, a.Fault) {
						t.Errorf("there is no fault %q", a.Fault)
					}
				}
			}
			for _, g := range s.Grants {
				if _, ok := s.Engines[g.Engine]; !ok && g.Engine != "a" && g.Engine != "b" {
					t.Errorf("there is no engine %q", g.Engine)
				}
			}
		})
	}
}

// TestTheMainScenariosNeedNothingButARealPool looks at what only one that is real can play.
func TestTheMainScenariosNeedNothingButARealPool(t *testing.T) {
	main, err := LoadMain()
	if err != nil {
		t.Fatal(err)
	}
	inDocument, seen := rules(t), map[string]bool{}
	spoiled, stories := false, 0
	for _, s := range main {
		if seen[s.Name] || s.Says == "" || len(s.Do) == 0 {
			t.Errorf("%s: the name is taken, or it says or does nothing", s.Name)
		}
		seen[s.Name] = true
		for _, rule := range s.Rules {
			if _, ok := inDocument[rule]; !ok {
				t.Errorf("%s stands for %s, which is not in the document", s.Name, rule)
			}
		}
		if s.Main.Leaves != Spoiled && spoiled {
			t.Errorf("%s comes after one that spoils the pool", s.Name)
		}
		spoiled = s.Main.Leaves == Spoiled
		if slices.ContainsFunc(s.Do, func(step Step) bool { return step.Call == Owner }) {
			stories++
		}
	}
	if len(main) < 20 || stories < 8 {
		t.Errorf("only %d main scenarios, %d of them stories", len(main), stories)
	}
}

func TestDifferencesAreFound(t *testing.T) {
	no := false
	cases := map[string]struct {
		demanded map[string]any
		got      Report
		want     int
	}{
		"all alike":               {map[string]any{"result": "NotSent", "status": 0.0}, Report{Result: "NotSent"}, 0},
		"another result":          {map[string]any{"result": "NotSent"}, Report{Result: "Succeeded"}, 1},
		"one of several":          {map[string]any{"result": []any{"NotSent", "Error"}}, Report{Result: "Error"}, 0},
		"none of several":         {map[string]any{"result": []any{"NotSent", "Error"}}, Report{Result: "Refused"}, 1},
		"a false that is asked":   {map[string]any{"mixed": true}, Report{Mixed: &no}, 1},
		"nothing said, but asked": {map[string]any{"mayRepeat": true}, Report{}, 1},
		"absent or false":         {map[string]any{"mayRepeat": []any{false, nil}}, Report{MayRepeat: &no}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Step{Report: c.demanded}.Differences(c.got)
			if err != nil || len(got) != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
