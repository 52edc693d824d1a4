package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// behind has a leader of many backends, and a follower that gives its clients little time.
func behind(t *testing.T, authorizer Authorizer) (leader, follower *world) {
	t.Helper()
	var lead, follow standings
	lead.set(Standing{Role: RoleAnswers, Self: t.Name()})
	leader = newWorld(t, 500, func(c *Config, _ *router.Fleet) {
		c.Leadership, c.Authorizer = &lead, authorizer
		c.Limits.WatchPeriod, c.Limits.WatchHistory = time.Millisecond, 1
	})
	follow.set(leaderOf(leader))
	follower = newWorld(t, 1, func(c *Config, _ *router.Fleet) {
		c.Leadership, c.Limits.Read, c.Limits.Write = &follow, 50*time.Millisecond, 50*time.Millisecond
	})
	return leader, follower
}

func TestNobodyKeepsAConnectionOfAFollowerByABodyThatDoesNotCome(t *testing.T) {
	for what, authorizer := range map[string]Authorizer{"a stranger": &gate{}, "somebody who may call": nil} {
		t.Run(what, func(t *testing.T) {
			_, follower := behind(t, authorizer)
			path := strings.TrimPrefix(follower.pool, follower.base)
			c := follower.raw("POST " + path + "/leases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
			if _, err := io.ReadAll(c); err != nil {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
}

func TestAFollowerGivesUpAClientThatNeverReads(t *testing.T) {
	leader, follower := behind(t, nil)
	gone := make(chan struct{})
	counting := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone) // it ends by a panic that net/http knows, which cuts the connection
		follower.server.ServeHTTP(w, r)
	})}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = counting.Serve(l) }()
	t.Cleanup(func() { counting.Close() })
	follower.base = "http://" + l.Addr().String()
	c := follower.raw("GET /v1alpha1/namespaces/rl/inferencepools/policy/watch HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReaderSize(c, 16).ReadByte(); err != nil {
		t.Fatal(err)
	}
	n := 0
	eventually(t, "the follower gives the stream up", func() bool {
		n++
		leader.change(func(f *router.Fleet) {
			f.Published = router.Version(fmt.Sprint("v", n))
			f.Senders[0].Access = []router.Access{router.AccessOpen, router.AccessFenced}[n%2]
		})
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

func TestWhoeverWaitsThroughAFollowerIsNotHurried(t *testing.T) {
	leader, follower := behind(t, nil)
	leader.change(fenceTrain)
	got := follower.start(t.Context(), ask("r1", "s1", object{"waitSeconds": 600}))
	leader.waiting(1)
	over := time.NewTimer(500 * time.Millisecond) // ten times what would cut it
	defer over.Stop()
	select {
	case r := <-got:
		t.Fatalf("answered early: %d %s", r.status, r.raw)
	case <-over.C:
	}
	leader.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
	if r := <-got; r.status != http.StatusCreated {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// late is an Authorizer whose first answer waits.
type late struct {
	first         sync.Once
	asked, answer chan struct{}
}

func (l *late) Authorize(*http.Request, router.PoolKey, router.SenderName) error {
	l.first.Do(func() { close(l.asked); <-l.answer })
	return nil
}

func (l *late) Authenticate(*http.Request) error { return nil }

func TestACallerIsNotHurriedForTheTimeThatItsRightsTook(t *testing.T) {
	const pace = time.Second
	guard := &late{asked: make(chan struct{}), answer: make(chan struct{})}
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) {
		c.Authorizer, c.Limits.Read, c.Limits.Write = guard, pace, pace
	})
	body := `{"requestID":"r1","sessionID":"s1","sender":"train","senderGeneration":3,"epoch":1}`
	path := strings.TrimPrefix(w.pool, w.base)
	c := w.raw(fmt.Sprintf("POST %s/leases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", path, len(body)))
	<-guard.asked
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	// The body is there; the answer about its sender comes after the time that it had.
	time.AfterFunc(2*pace, func() { close(guard.answer) })
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 201 ") {
		t.Errorf("%v: %s", err, answer)
	}
}

// A replica that warned of its leader for every caller that breaks off would cry wolf.
func TestABodyThatBreaksOffIsNoFaultOfTheLeaders(t *testing.T) {
	for name, c := range map[string]struct {
		leader func(*world) Standing
		sent   string
		status string
		warned bool
	}{
		"the caller breaks off": {leaderOf, askR1[:len(askR1)/2], "400", false},
		"the leader is gone":    {func(*world) Standing { return Standing{Role: RoleForwards, Leader: "127.0.0.1:1"} }, askR1, "503", true},
	} {
		t.Run(name, func(t *testing.T) {
			leader, _ := replica(t, RoleAnswers)
			var standing standings
			standing.set(c.leader(leader))
			var out bytes.Buffer
			follower := newWorld(t, 1, func(config *Config, _ *router.Fleet) {
				config.Leadership, config.Log = &standing, slog.New(slog.NewTextHandler(&out, nil))
			})
			path := strings.TrimPrefix(follower.pool, follower.base)
			conn := follower.raw(fmt.Sprintf("POST %s/leases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", path, len(askR1), c.sent))
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+c.status) {
				t.Errorf("%v: %s", err, got)
			}
			if err := follower.stop(); err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(out.String(), "did not answer"); warned != c.warned {
				t.Errorf("warned of the leader: %t, want %t\n%s", warned, c.warned, out.String())
			}
		})
	}
}
