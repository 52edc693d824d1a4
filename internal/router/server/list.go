package server

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/berthmaster/berthmaster/internal/router"
)

// listPath is where pools are listed.
const listPath = "/v1alpha1/inferencepools"

// poolName is one pool of the list.
type poolName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type listAnswer struct {
	Pools []poolName `json:"pools"`
}

// list is GET of all pools: those that the caller may look at.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		s.refuseMethod(w, route{methods: map[string]handler{http.MethodGet: nil}})
		return
	}
	pools, err := s.visible(r)
	if err != nil {
		s.refuse(w, err)
		return
	}
	if s.answersHere(w, r, &call{pace: s.pace()}) {
		s.answer(w, router.PoolKey{}, listAnswer{Pools: pools})
	}
}

// visible are the pools that the caller may look at, in order. A stranger is told nothing, not even that there is
// none. If there are pools, and none for the caller, it fails with the reason, instead of showing an empty house.
func (s *Server) visible(r *http.Request) ([]poolName, error) {
	if s.authorizer != nil {
		if err := s.authorizer.Authenticate(r); err != nil {
			return nil, err
		}
	}
	pools := []poolName{}
	var refused error
	for key := range s.pools.All() {
		if err := s.authorize(r, key, ""); err != nil {
			refused = err
			continue
		}
		pools = append(pools, poolName{key.Namespace, key.Name})
	}
	if len(pools) == 0 && refused != nil {
		return nil, refused
	}
	slices.SortFunc(pools, func(a, b poolName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pools, nil
}

// queueView is who waits for leases of one sender.
type queueView struct {
	Sender  router.SenderName `json:"sender"`
	Waiting int               `json:"waiting"`
	// LongestSeconds is how long the first of them has waited.
	LongestSeconds float64 `json:"longestSeconds"`
}

func queuesOf(v *router.Snapshot) []queueView {
	out := make([]queueView, 0, len(v.Queues))
	for _, q := range v.Queues {
		out = append(out, queueView{q.Sender, q.Waiting, q.Longest.Seconds()})
	}
	return out
}
