package enginesim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

func TestValidateNamesTheFieldThatIsWrong(t *testing.T) {
	for want, c := range map[string]Config{
		"MaxRunning":       {Model: model.Params{MaxRunning: -1}},
		"Speed":            {Speed: -1},
		"DPSize":           {DPSize: -1},
		"NaturalTokens":    {NaturalTokens: -1},
		"MaxQueued":        {MaxQueued: -1},
		"Startup":          {Startup: -1},
		"HealthPoll":       {HealthPoll: -1},
		"HealthTimeout":    {HealthTimeout: -1},
		"AbortPoll":        {AbortPoll: -1},
		"ExitPoll":         {ExitPoll: -1},
		"KeepAlive":        {KeepAlive: -1},
		"StreamInterval":   {StreamInterval: -1},
		"HealthGeneration": {HealthGeneration: "yes"},
		"Metrics":          {Metrics: "yes"},
		"MemorySaver":      {MemorySaver: "yes"},
		"Streaming":        {Streaming: "backwards"},
		"Legacy":           {Legacy: "always"},
		"fault 1":          {Faults: []Fault{{Kind: FaultHang}, {Kind: "explode"}}},
	} {
		if s, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
			if s != nil {
				s.Close()
			}
		}
	}
}

func TestTheNamesOfTheModelAreThoseOfTheConfiguration(t *testing.T) {
	inBubble(t, Config{ModelPath: "the/path", ServedModelName: "the-name", WeightVersion: "v5"}, func(b *bubble) {
		info := b.do(http.MethodGet, "/model_info", "").json(t)
		if info["model_path"] != "the/path" || info["weight_version"] != "v5" {
			t.Errorf("%v", info)
		}
		if body := b.do(http.MethodGet, "/v1/models", "").rec.Body.String(); !strings.Contains(body, `"id":"the-name"`) {
			t.Error(body)
		}
	})
}

func TestIDsComeFromTheConfiguration(t *testing.T) {
	n := 0
	inBubble(t, Config{NewID: func() string { n++; return strings.Repeat("i", n) }}, func(b *bubble) {
		b.post("/generate", `{"text":"x"}`)
		if all := b.log.all(); all[0].Life != "i" || all[1].RID != "ii" {
			t.Errorf("%+v", all)
		}
	})
}

func TestTimeComesFromTheClockOfTheConfiguration(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Unix(1000, 0))
	inBubble(t, Config{Clock: fake}, func(b *bubble) {
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(time.Hour) // of a clock that the engine does not look at
		if c.over() {
			t.Fatal("it did not wait for its clock")
		}
		for !c.over() {
			fake.Step(10 * time.Millisecond)
		}
		if took := fake.Since(time.Unix(1000, 0)); took < hundredTime || took > 2*hundredTime {
			t.Errorf("it took %v by its clock", took)
		}
	})
}
