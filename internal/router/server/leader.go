package server

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// The headers between replicas.
const (
	// ForwardedHeader marks a call that a replica has forwarded; its value is of no matter. Such a
	// call is not forwarded again.
	ForwardedHeader = "Berthmaster-Forwarded"
	// AnsweredByHeader names the replica that answers a marked call: behind the address of a leader
	// that is gone a stranger may listen, whose answer would look final.
	AnsweredByHeader = "Berthmaster-Answered-By"
)

// errStranger is an answer that is not the leader's.
var errStranger = errors.New("somebody else answers at the leader's address")

// ReasonNotLeader: a call was forwarded here by a replica that took this one for the leader.
const ReasonNotLeader router.Reason = "NotLeader"

// Role is what a replica is to its clients.
type Role int

// The roles. The zero value is the one that promises nothing.
const (
	// RoleNone: nobody is known who may answer.
	RoleNone Role = iota
	// RoleAnswers: the calls are for this replica, whose tables know what they may do.
	RoleAnswers
	// RoleForwards: another replica leads.
	RoleForwards
)

// Standing says who answers calls now.
type Standing struct {
	Role Role
	// Self is the identity of this replica.
	Self string
	// Leader is the host:port of the leader's lease API and LeaderID its identity, with RoleForwards.
	Leader, LeaderID string
	// Reign is done once it is for another to answer; calls that wait end then. Nil: it lasts.
	Reign context.Context
}

// Leadership knows who leads.
type Leadership interface {
	// Standing is how things stand now. It is asked for every call.
	Standing() Standing
}

// alone is the leadership of the only replica there is.
type alone struct{}

func (alone) Standing() Standing { return Standing{Role: RoleAnswers} }

// answersHere reports whether the call, whose caller has been judged, is for this replica. If not it has
// been answered: by the leader, to whom it was forwarded once, or with a refusal.
func (s *Server) answersHere(w http.ResponseWriter, r *http.Request, c *call) bool {
	return s.answersAt(w, r, c, s.leadership.Standing())
}

// answersAt is answersHere as things stand.
func (s *Server) answersAt(w http.ResponseWriter, r *http.Request, c *call, standing Standing) bool {
	forwarded := r.Header.Get(ForwardedHeader) != ""
	if forwarded {
		w.Header().Set(AnsweredByHeader, standing.Self)
	}
	switch {
	case standing.Role == RoleAnswers:
		c.reign = standing.Reign
		return true
	case forwarded:
		s.refuse(w, &router.Refusal{
			Reason: ReasonNotLeader, RetryAfter: time.Second,
			Detail: "a replica forwarded this call to one that does not lead: ask again, under the same requestID",
		})
	case standing.Role == RoleForwards:
		s.forward(w, r, standing, c.pace)
	case standing.Role == RoleNone:
		s.refuse(w, noLeader("no replica is known to lead"))
	}
	return false
}

// AnswersHere reports whether a call that is not of the lease API, but of a data path beside it, is
// for this replica. If not it has been answered, as one of the lease API would have been. It judges
// only those whose call the leader answers; the others are for the data path to judge, which finds a deadline on
// the body's unread rest.
func (s *Server) AnswersHere(w http.ResponseWriter, r *http.Request) bool {
	Hurry(w, r, s.limits.Unread)
	// Looked at once: who may call is asked before a call is forwarded, whatever becomes of the leader meanwhile.
	standing := s.leadership.Standing()
	if standing.Role == RoleForwards {
		pool, ok := poolOf(r.URL.Path)
		if !ok {
			s.refuse(w, &router.Refusal{Reason: ReasonNotFound, Detail: "the path names no pool"})
			return false
		}
		if !s.lets(w, r, pool) {
			return false
		}
	}
	return s.answersAt(w, r, &call{pace: pace{dataSending, dataReading, s.limits.Unread}}, standing)
}

// poolOf finds the pool in a path of the data path, which takes slashes in a row for one and leaves dots as
// they are: another reading would judge the caller by another pool than the one that it calls.
func poolOf(path string) (pool router.PoolKey, ok bool) {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	const named = 5 // v1alpha1 namespaces {} inferencepools {}
	if len(parts) < named || parts[0] != "v1alpha1" || parts[1] != "namespaces" || parts[3] != "inferencepools" {
		return pool, false
	}
	return router.PoolKey{Namespace: parts[2], Name: parts[4]}, true
}

func noLeader(detail string) *router.Refusal {
	return &router.Refusal{Reason: router.ReasonNoLeader, RetryAfter: time.Second, Detail: detail + ": ask again, under the same requestID"}
}

// forward has the leader answer. The call ends with its client or with this server; how long it may
// wait is for the leader to bound.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, standing Standing, p pace) {
	leader := standing.Leader
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	if standing.Reign != nil {
		// A leader that stands still would keep its callers for ever.
		defer context.AfterFunc(standing.Reign, cancel)()
	}
	w, body, settle := p.follow(w, r)
	defer settle()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(&url.URL{Scheme: s.leaderScheme(), Host: leader})
			q.Out.Host = r.Host
			q.Out.Header.Set(ForwardedHeader, "1")
		},
		ModifyResponse: func(reply *http.Response) error {
			if reply.Header.Get(AnsweredByHeader) != standing.LeaderID {
				return errStranger
			}
			reply.Header.Del(AnsweredByHeader)
			return nil
		},
		Transport: s.toLeader, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, out *http.Request, err error) {
			if body.torn() {
				s.refuse(w, unreadable())
				return
			}
			s.forwardFailed(w, out, leader, err)
		},
		ErrorLog: s.errorLog(),
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// leaderScheme says whether leaders are called by TLS.
func (s *Server) leaderScheme() string {
	if s.toLeader.DialTLSContext != nil {
		return "https"
	}
	return "http"
}

// newLeaderTransport carries forwarded calls. It asks no proxy of the environment: the leader is a
// neighbour.
func newLeaderTransport(dialTLS func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	const dial, idle = 5 * time.Second, 30 * time.Second
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: dial}).DialContext, MaxIdleConnsPerHost: 256, IdleConnTimeout: idle,
		DisableCompression: true, DialTLSContext: dialTLS,
	}
}

// errorLog is where the standard library complains.
func (s *Server) errorLog() *log.Logger { return slog.NewLogLogger(s.log.Handler(), slog.LevelWarn) }

// forwardFailed answers a call that the leader did not: it may have taken it or not, which is why
// every call may be made again.
func (s *Server) forwardFailed(w http.ResponseWriter, out *http.Request, leader string, err error) {
	if !errors.Is(err, context.Canceled) {
		pool, rest, _ := split(out.URL.Path)
		_, id := shape(rest)
		at := &failedCall{err, pool, id}
		s.log.Warn("lease API: the leader did not answer", append(at.facts(), "call", out.Method+" "+out.URL.Path, "leader", leader, "error", err)...)
	}
	s.refuse(w, noLeader("the leader did not answer"))
}
