package enginesim

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

func TestSlowDelaysInRealTime(t *testing.T) {
	inBubble(t, Config{Speed: 100}, func(b *bubble) {
		b.fault(`{"kind":"slow","millis":700,"paths":["/model_info"]}`)
		if c := b.do(http.MethodGet, "/model_info", ""); !about(c.took, 700*time.Millisecond) || c.rec.Code != http.StatusOK {
			t.Errorf("%d after %v", c.rec.Code, c.took)
		}
		if c := b.do(http.MethodGet, "/v1/loads", ""); c.took > 0 {
			t.Errorf("another path took %v", c.took)
		}
	})
}

func TestAStatusBeforeExecutesNothingAndAfterExecutes(t *testing.T) {
	for when, want := range map[string]int{"before": 0, "after": 2} {
		inBubble(t, Config{}, func(b *bubble) {
			b.fault(`{"kind":"status","status":502,"when":"` + when + `","paths":["/generate"]}`)
			c := b.post("/generate", hundred(""))
			if c.rec.Code != http.StatusBadGateway || len(b.lines()) != want {
				t.Errorf("%s: status %d, %d lines", when, c.rec.Code, len(b.lines()))
			}
		})
	}
}

func TestAFaultStrikesAsOftenAsItCounts(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.fault(`{"kind":"status","status":500,"count":2,"paths":["/model_info"]}`)
		var got []int
		for range 3 {
			got = append(got, b.do(http.MethodGet, "/model_info", "").rec.Code)
		}
		if got[0] != 500 || got[1] != 500 || got[2] != 200 {
			t.Errorf("%v", got)
		}
	})
}

func TestHangNeitherAnswersNorExecutesUntilTheClientGoes(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.fault(`{"kind":"hang","paths":["/generate"]}`)
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(time.Hour)
		if c.over() {
			t.Fatal("it answered")
		}
		c.cancel()
		<-c.done
		if !c.cut || len(b.lines()) != 0 {
			t.Errorf("cut %v, %d lines", c.cut, len(b.lines()))
		}
	})
}

func TestExitAfterRequestsEndsTheProcessWithItsCode(t *testing.T) {
	inBubble(t, Config{Faults: []Fault{{Kind: FaultExit, After: 3, Code: 42}}}, func(b *bubble) {
		for range 2 {
			if c := b.post("/generate", hundred("")); c.cut {
				t.Fatal("too early")
			}
		}
		c := b.post("/generate", hundred(""))
		<-b.s.Done()
		if !c.cut || b.s.ExitCode() != 42 {
			t.Errorf("cut %v, exit status %d", c.cut, b.s.ExitCode())
		}
		lines := b.lines()
		if last := lines[len(lines)-1]; len(lines) != 5 || last.Event != execlog.Start {
			t.Errorf("the third execution has a start and no finish: %+v", lines)
		}
	})
}

func TestADeadSchedulerGeneratesNothingAndComesBackWhenCleared(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.fault(`[{"kind":"scheduler-dead"},{"kind":"health","status":200}]`)
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(time.Hour)
		if c.over() {
			t.Error("it generated")
		}
		if h := b.do(http.MethodGet, "/health", ""); h.rec.Code != http.StatusOK || h.took > 0 {
			t.Errorf("health %d after %v", h.rec.Code, h.took)
		}
		b.do(http.MethodDelete, "/sim/faults", "")
		<-c.done
		if c.rec.Code != http.StatusOK {
			t.Errorf("status %d", c.rec.Code)
		}
	})
}

func TestTheWatchdogKillsAHungSchedulerAndNotADeadOne(t *testing.T) {
	inBubble(t, Config{Watchdog: 100 * time.Second}, func(b *bubble) {
		b.fault(`{"kind":"scheduler-dead"}`)
		after(time.Hour)
		b.do(http.MethodDelete, "/sim/faults", "")
		b.fault(`{"kind":"scheduler-hung"}`)
		after(99 * time.Second)
		b.do(http.MethodDelete, "/sim/faults", "")
		after(time.Hour)
		began := time.Now()
		b.fault(`{"kind":"scheduler-hung"}`)
		<-b.s.Done()
		if took := time.Since(began); !about(took, 100*time.Second) || b.s.ExitCode() != exitCrash {
			t.Errorf("exit status %d after %v", b.s.ExitCode(), took)
		}
	})
}

func TestANegativeWatchdogNeverKills(t *testing.T) {
	inBubble(t, Config{Watchdog: -1, Faults: []Fault{{Kind: FaultSchedulerHung}}}, func(b *bubble) {
		after(24 * time.Hour)
		if c := b.do(http.MethodGet, "/model_info", ""); c.rec.Code != http.StatusOK {
			t.Errorf("status %d", c.rec.Code)
		}
	})
}

func TestFaultsAreListedAndCleared(t *testing.T) {
	inBubble(t, Config{Faults: []Fault{{Kind: FaultHealth}}}, func(b *bubble) {
		b.fault(`{"kind":"wrong-version","version":"v0"}`)
		if list, _ := b.do(http.MethodGet, "/sim/faults", "").json(t)["faults"].([]any); len(list) != 2 {
			t.Errorf("%v", list)
		}
		if c := b.do(http.MethodGet, "/health", ""); c.rec.Code != http.StatusServiceUnavailable {
			t.Errorf("health %d", c.rec.Code)
		}
		if list, _ := b.do(http.MethodDelete, "/sim/faults", "").json(t)["faults"].([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		if c := b.do(http.MethodGet, "/health", ""); c.rec.Code != http.StatusOK {
			t.Errorf("health %d", c.rec.Code)
		}
	})
}

func TestAFaultThatMakesNoSenseIsRefused(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		for body, want := range map[string]string{
			`{"kind":"explode"}`:                   "none of",
			`{"kind":"slow"}`:                      "millis is missing",
			`{"kind":"slow","millis":-1}`:          "must not be negative",
			`{"kind":"status","status":99}`:        "from 200 to 599",
			`{"kind":"status","when":"now"}`:       "before or after",
			`{"kind":"update-fails","status":500}`: "200 or 400",
			`{"kind":`:                             "JSON",
			`[{"kind":"hang"},{"kind":"explode"}]`: "none of",
		} {
			if c := b.post("/sim/faults", body); c.rec.Code != http.StatusBadRequest || !strings.Contains(c.rec.Body.String(), want) {
				t.Errorf("%s: %d %s", body, c.rec.Code, c.rec.Body)
			}
		}
		if list, _ := b.do(http.MethodGet, "/sim/faults", "").json(t)["faults"].([]any); len(list) != 0 {
			t.Errorf("a refused list left %v", list)
		}
	})
}

// socketed is an engine with a socket of its own, for what happens on connections.
func socketed(t *testing.T, cfg Config) string {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- k.Serve() }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return k.URL()
}

func fetch(t *testing.T, method, url, body string) (*http.Response, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return resp, string(read), err
}

func TestResetCutsTheReplyAfterItsBytes(t *testing.T) {
	url := socketed(t, Config{Speed: 1000, Faults: []Fault{{Kind: FaultReset, Bytes: 33, Paths: []string{"/generate"}}}})
	for _, extra := range []string{"", `,"stream":true`} {
		_, body, err := fetch(t, http.MethodPost, url+"/generate", hundred(extra))
		if err == nil || len(body) > 33 {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	}
	if resp, _, err := fetch(t, http.MethodGet, url+"/model_info", ""); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("another path: %v", err)
	}
}

func TestResetAfterNothingAnswersNothing(t *testing.T) {
	url := socketed(t, Config{Faults: []Fault{{Kind: FaultReset, Paths: []string{"/model_info"}}}})
	_, body, err := fetch(t, http.MethodGet, url+"/model_info", "")
	if err == nil || body != "" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestRefuseClosesThePort(t *testing.T) {
	url := socketed(t, Config{Faults: []Fault{{Kind: FaultRefuse, Millis: 3_600_000}}})
	until(t, "connections are refused", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

func TestRefuseIsOverAfterItsTime(t *testing.T) {
	url := socketed(t, Config{})
	for range 3 {
		until(t, "the fault is set", func() bool {
			_, _, err := fetch(t, http.MethodPost, url+"/sim/faults", `{"kind":"refuse","millis":20}`)
			return err == nil
		})
		until(t, "connections are accepted again", func() bool {
			resp, _, err := fetch(t, http.MethodGet, url+"/model_info", "")
			return err == nil && resp.StatusCode == http.StatusOK
		})
	}
}

func TestKeepAliveClosesIdleConnections(t *testing.T) {
	url := socketed(t, Config{KeepAlive: 50 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}

func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ready() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}
