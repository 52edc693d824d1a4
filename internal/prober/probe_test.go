package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

// answers is an engine whose every call has one answer.
type answers struct {
	health, model, server, load error
	version                     string
	ranks                       []sglang.RankState
	loads                       []sglang.LoadSnapshot
}

func (a answers) Health(context.Context) error { return a.health }

func (a answers) ModelInfo(context.Context) (sglang.ModelInfo, error) {
	return sglang.ModelInfo{WeightVersion: a.version}, a.model
}

func (a answers) ServerInfo(context.Context) (sglang.ServerInfo, error) {
	return sglang.ServerInfo{Ranks: a.ranks}, a.server
}

func (a answers) Loads(context.Context) ([]sglang.LoadSnapshot, error) { return a.loads, a.load }

func TestAProbeTellsItsAnswersApart(t *testing.T) {
	refused := fmt.Errorf("/x: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	noRoute := fmt.Errorf("/x: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)})
	unwell := &sglang.StatusError{Route: "/health", Code: 503}
	late := fmt.Errorf("/x: %w", context.DeadlineExceeded)
	full := []sglang.LoadSnapshot{{MaxRunning: 64, Running: 3}, {Rank: 1, MaxRunning: 64, Waiting: 2, Paused: 1}}
	const nobody = "nobody listens at the engine's address: connection refused"
	cases := map[string]struct {
		engine answers
		want   event
	}{
		"all is well": {
			answers{version: "v", loads: full}, event{kind: probeAnswered, version: "v", capacity: 128, total: 6},
		},
		"capacity comes from the scheduler if the loads do not tell": {
			answers{version: "v", load: unwell, ranks: []sglang.RankState{{MaxRunning: 32}}},
			event{kind: probeAnswered, version: "v", capacity: 32, total: noTotal},
		},
		"capacity is unknown if nobody tells": {
			answers{version: "v", load: unwell, server: late}, event{kind: probeAnswered, version: "v", total: noTotal},
		},
		"no version is told": {
			answers{loads: full},
			event{kind: probeAnswered, capacity: 128, total: 6, message: "the engine tells no weight version in /model_info"},
		},
		"the version cannot be read": {
			answers{loads: full, model: late},
			event{
				kind: probeAnswered, capacity: 128, total: 6,
				message: "the weight version could not be read: /model_info did not answer within 5s",
			},
		},
		"it stops listening after its health was proven": {
			answers{model: refused}, event{kind: probeRefused, message: nobody},
		},
		"nobody listens": {answers{health: refused}, event{kind: probeRefused, message: nobody}},
		"503 while the scheduler answers": {
			answers{health: unwell}, event{kind: probeParked, message: parkedMessage},
		},
		"a time-out while the scheduler answers": {
			answers{health: late}, event{kind: probeParked, message: parkedMessage},
		},
		"503 and a silent scheduler": {
			answers{health: unwell, server: late}, event{kind: probeFailed, message: "/health answered 503"},
		},
		"a time-out and a silent scheduler": {
			answers{health: late, server: late}, event{kind: probeFailed, message: "/health did not answer within 25s"},
		},
		"503 from a process that is gone a moment later": {
			answers{health: unwell, server: refused}, event{kind: probeRefused, message: nobody},
		},
		"any other status is no pause": {
			answers{health: &sglang.StatusError{Route: "/health", Code: 500, Message: "boom"}},
			event{kind: probeFailed, message: "/health answered 500: boom"},
		},
		"no route": {
			answers{health: noRoute}, event{kind: probeFailed, message: "/health: connect: no route to host"},
		},
		"a host name that does not resolve": {
			answers{health: fmt.Errorf("/x: %w", &net.DNSError{Name: "a", Err: "no such host"})},
			event{kind: probeFailed, message: `the engine's host name "a" does not resolve`},
		},
		"a cut connection": {
			answers{health: fmt.Errorf("/x: %w", io.ErrUnexpectedEOF)},
			event{kind: probeFailed, message: "/health: the connection was cut"},
		},
		"a reply no engine gives": {
			answers{health: fmt.Errorf("/x: %w", sglang.ErrReplyTooLarge)},
			event{kind: probeFailed, message: "/health answered what an SGLang engine would not"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := probe(t.Context(), c.engine, 25*time.Second)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(event{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMessageIsTheSameForEveryLocalPort(t *testing.T) {
	reset := func(port int) error {
		return &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Addr: &net.TCPAddr{Port: 30000},
			Err: os.NewSyscallError("read", syscall.ECONNRESET),
		}
	}
	first, second := describe("/health", reset(40001), 0), describe("/health", reset(40002), 0)
	if first != second || first != "/health: read: connection reset by peer" {
		t.Errorf("got %q and %q", first, second)
	}
	if errors.Is(reset(1), syscall.ECONNREFUSED) {
		t.Error("a reset is not a refusal")
	}
}
