package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

func fansOut(router.PoolKey) proxy.Settings { return proxy.Settings{Control: proxy.ControlFanOut} }

// controlled is an engine of so many ranks that answers every control call alike.
func controlled(t *testing.T, ranks int, answer string) *scripted {
	return script(t, func(_ int64, c net.Conn, _ *bufio.Reader, body string) verdict {
		if body == "" { // /server_info
			answer := plain(fmt.Sprintf(`{"tp_size":%d}`, ranks))
			_, _ = io.WriteString(c, answer)
			return stayOpen
		}
		_, _ = io.WriteString(c, answer)
		return stayOpen
	})
}

func TestAControlCallReachesEveryEngineWithItsOwnRankOffset(t *testing.T) {
	ok := plain(`{"success":true,"message":"joined"}`)
	engines := []*scripted{controlled(t, 4, ok), controlled(t, 2, ok), controlled(t, 4, ok)}
	g := newRig(t, proxy.Config{Settings: func(router.PoolKey) proxy.Settings {
		return proxy.Settings{Control: proxy.ControlFanOut, AdminKey: "admin"}
	}}, engines[0].url, engines[1].url, engines[2].url)
	status, text := g.post("/init_weights_update_group", `{"master_address":"h","rank_offset": 1 ,"world_size":11}`)
	if status != 200 || !strings.Contains(text, "joined") {
		t.Fatalf("got %d %s", status, text)
	}
	var got []string
	for _, e := range engines {
		body, head := e.last()
		got = append(got, body+head.Get("Authorization"))
	}
	want := []string{
		`{"master_address":"h","rank_offset": 1 ,"world_size":11}Bearer admin`,
		`{"master_address":"h","rank_offset": 5 ,"world_size":11}Bearer admin`,
		`{"master_address":"h","rank_offset": 7 ,"world_size":11}Bearer admin`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAControlCallFailsUnlessEveryEngineDoesIt(t *testing.T) {
	ok := plain(`{"success":true}`)
	for name, other := range map[string]string{
		"an engine declines":          plain(`{"success":false,"message":"shape mismatch"}`),
		"an engine answers 400":       sized(400, "application/json", `{"success":false,"message":"shape mismatch"}`),
		"an engine breaks off":        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshape mismatch",
		"an engine is not to be read": "nonsense\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			a, b := controlled(t, 1, ok), script(t, replies(other, hangUp))
			g := newRig(t, proxy.Config{Settings: fansOut}, a.url, b.url)
			status, text, head := g.send(t.Context(), "/update_weights_from_disk", `{"model_path":"p"}`)
			if status != 502 || !strings.Contains(text, "1 of 2 engines") || !strings.Contains(text, "b1: ") || head.Get("X-Should-Retry") != "false" {
				t.Errorf("got %d %s", status, text)
			}
			if a.generated.Load() != 1 || b.generated.Load() != 1 {
				t.Errorf("sent %d and %d times", a.generated.Load(), b.generated.Load())
			}
		})
	}
}

func TestAControlCallThatNeedsRanksIsNotSentWithoutThem(t *testing.T) {
	a, b := controlled(t, 1, plain(`{}`)), controlled(t, 0, plain(`{}`))
	g := newRig(t, proxy.Config{Settings: fansOut}, a.url, b.url)
	status, text := g.post("/init_weights_update_group", `{"rank_offset":1}`)
	if body, _ := a.last(); status != 502 || !strings.Contains(text, "nothing was sent") || body != "" {
		t.Errorf("got %d %s; the first engine got %q", status, text, body)
	}
}

func TestControlCallsThatWaitForEachOtherMeet(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
		both.Done()
		both.Wait() // as a process group does
		_, _ = io.WriteString(c, plain("{}"))
		return stayOpen
	}
	a, b := script(t, meet), script(t, meet)
	g := newRig(t, proxy.Config{Settings: fansOut}, a.url, b.url)
	if status, text := g.post("/init_weights_update_group", `{}`); status != 200 {
		t.Errorf("got %d %s", status, text)
	}
}

func TestAPauseOfAllEnginesParksGenerationsUntilAllGoOn(t *testing.T) {
	a, _ := simulated(t, enginesim.Config{Name: "a"})
	b, _ := simulated(t, enginesim.Config{Name: "b"})
	g := newRig(t, proxy.Config{Settings: fansOut}, a, b)
	if status, text := g.post("/pause_generation", `{"mode":"retract"}`); status != 200 {
		t.Fatalf("got %d %s", status, text)
	}
	answered := make(chan int, 1)
	go func() {
		status, _ := g.post("/generate", generation("/generate", 5, ""))
		answered <- status
	}()
	eventually(t, "it is leased", func() bool { return g.counted() == 1 })
	select {
	case status := <-answered:
		t.Fatalf("a paused engine answered %d", status)
	default:
	}
	if status, text := g.post("/continue_generation", `{}`); status != 200 {
		t.Fatalf("got %d %s", status, text)
	}
	if status := <-answered; status != 200 {
		t.Errorf("got %d", status)
	}
	if status, text := g.post("/flush_cache", ""); status != 200 || !strings.Contains(text, "flushed") {
		t.Errorf("got %d %s", status, text)
	}
}

func TestTheRouterLearnsTheVersionOfAnUpdateFromTheCallThatMadeIt(t *testing.T) {
	ok := plain(`{"success":true}`)
	for name, c := range map[string]struct {
		path, body, other string
		want              []router.Version
	}{
		"an update that names its version": {"/update_weights_from_disk", `{"model_path":"p","weight_version":"v2"}`, ok, []router.Version{"v2", "v2"}},
		"a version alone":                  {"/update_weight_version", `{"new_version":"v2"}`, ok, []router.Version{"v2", "v2"}},
		"an update that one engine missed": {"/update_weights_from_disk", `{"weight_version":"v2"}`, plain(`{"success":false}`), []router.Version{"v2", ""}},
		"an update that names none":        {"/update_weights_from_disk", `{"model_path":"p"}`, ok, []router.Version{"v1", "v1"}},
		"a call that loads no weights":     {"/flush_cache", `{"weight_version":"v2"}`, ok, []router.Version{"v1", "v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := controlled(t, 1, ok), controlled(t, 1, c.other)
			g := newRig(t, proxy.Config{Settings: fansOut}, a.url, b.url)
			g.runs("v1")
			_, _ = g.post(c.path, c.body)
			if diff := cmp.Diff(c.want, g.versions()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
