package simulate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

const (
	sender = "train"
	epoch  = 1
	// forever outlasts every run: clients renew their leases and do not pause for hours, so
	// no lease is lost and no idle session forgotten.
	forever = 10 * 365 * 24 * time.Hour
)

// shipped lets the real router place, in virtual time, as a client that follows the lease
// protocol would.
type shipped struct {
	table    *router.Table
	sessions []workload.Session
	replica  map[router.BackendName]int
	leases   []lease // of each session, its last one
}

// lease is a session's turn as the router knows it.
type lease struct {
	claim router.Claim
	turn  int
}

// origin is the moment at which virtual time begins.
func origin() time.Time { return time.Unix(0, 0) }

// capacities says what the router is told about the replicas.
type capacities int

const (
	trueCapacities capacities = iota + 1
	equalCapacities
)

// routed makes the placer of the real router with the given policy and affinity mode.
func routed(policy router.Policy, mode router.AffinityMode, told capacities) func(situation) (placer, error) {
	return func(given situation) (placer, error) {
		var seed [32]byte // rids decide nothing; a fixed stream saves asking the system
		s := &shipped{
			table:    router.NewTable("simulated", rand.NewChaCha8(seed), origin()),
			sessions: given.sessions,
			replica:  make(map[router.BackendName]int),
			leases:   make([]lease, len(given.sessions)),
		}
		fleet := router.Fleet{
			Epoch: epoch, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
			Senders: []router.Sender{{Name: sender, Access: router.AccessOpen}},
		}
		fleet.Config.Policy, fleet.Config.Mode = policy, mode
		fleet.Config.TTL, fleet.Config.IdleTimeout = forever, forever
		for i, b := range given.fleet {
			m := router.Member{
				Name: router.BackendName(b.Name), Incarnation: router.Incarnation(b.Name),
				URL: "http://" + b.Name, Capacity: b.Capacity,
			}
			if told == equalCapacities {
				m.Capacity = given.fleet[0].Capacity
			}
			fleet.Members = append(fleet.Members, m)
			s.replica[m.Name] = i
		}
		if err := s.table.Apply(fleet, origin()); err != nil {
			return nil, fmt.Errorf("router: %w", err)
		}
		s.table.Lead(1, router.Takeover{}, origin())
		for _, m := range fleet.Members {
			s.table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy}, origin())
		}
		return s, nil
	}
}

func (s *shipped) acquire(session int, now time.Duration) (int, error) {
	one, l := &s.sessions[session], &s.leases[session]
	grant, err := s.table.Acquire(router.Request{
		ID:      router.RequestID(one.ID + "." + strconv.Itoa(l.turn)),
		Session: router.SessionID(one.ID), Sender: sender, Epoch: epoch,
		Group: router.GroupID(one.Group), Executions: 1,
	}, origin().Add(now))
	if err != nil {
		return 0, err
	}
	l.claim = grant.Claim
	return s.replica[grant.Claim.Backend], nil
}

func (s *shipped) release(session int, now time.Duration) error {
	l := &s.leases[session]
	turn := s.sessions[session].Turns[l.turn]
	l.turn++
	_, err := s.table.Release(l.claim, router.Succeeded, router.Reply{
		PromptTokens: int64(turn.Prompt), OutputTokens: int64(turn.Output),
	}, origin().Add(now))
	return err
}

func (s *shipped) end(session int, now time.Duration) error {
	return s.table.EndSession(router.SessionID(s.sessions[session].ID), sender, origin().Add(now))
}
