package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lookPeriod is how often the lease API is asked, and so how exact a wait is. Asking costs the manager
// processor time, too.
const lookPeriod = 20 * time.Millisecond

// readiness restarts engines one after the other, as far as the cluster can tell, and measures how long
// each waits from the moment at which the API server has it ready until the router would lease it.
func (s *site) readiness(ctx context.Context, samples int) ([]time.Duration, error) {
	total := s.layout.pools * s.layout.backends
	waits := make([]time.Duration, 0, samples)
	for n := range samples {
		i := n * (total/samples + 1) % total
		waited, err := s.restart(ctx, i, n+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(i), err)
		}
		waits = append(waits, waited)
	}
	slices.Sort(waits)
	return waits, nil
}

// restart gives the backend of engine i another life, not ready at first.
func (s *site) restart(ctx context.Context, i, life int) (time.Duration, error) {
	if err := s.report(ctx, i, life, corev1.ConditionFalse); err != nil {
		return 0, err
	}
	ending := fmt.Sprintf("-%d", life)
	if err := s.until(ctx, i, func(b *backend) bool { return strings.HasSuffix(b.Incarnation, ending) }); err != nil {
		return 0, fmt.Errorf("its new life to be known: %w", err)
	}
	if err := s.report(ctx, i, life, corev1.ConditionTrue); err != nil {
		return 0, err
	}
	ready := time.Now()
	err := s.until(ctx, i, func(b *backend) bool { return b.Admissible && strings.HasSuffix(b.Incarnation, ending) })
	if err != nil {
		return 0, fmt.Errorf("it to be admissible: %w", err)
	}
	return time.Since(ready), nil
}

// backend is what the lease API tells of one.
type backend struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	Admissible  bool   `json:"admissible"`
}

// until waits for something of the backend of engine i, in the live view of its pool.
func (s *site) until(ctx context.Context, i int, holds func(*backend) bool) error {
	url := s.manager.leases + "/v1alpha1/namespaces/" + namespace + "/inferencepools/" + poolName(i/s.layout.backends)
	return wait.PollUntilContextTimeout(ctx, lookPeriod, patience, true, func(ctx context.Context) (bool, error) {
		view, err := look(ctx, url)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(view, func(b backend) bool { return b.Name == nameOf(i) && holds(&b) }), nil
	})
}

func look(ctx context.Context, url string) ([]backend, error) {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(call)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, errors.New(url + " answers " + reply.Status)
	}
	var view struct {
		Backends []backend `json:"backends"`
	}
	err = json.NewDecoder(reply.Body).Decode(&view)
	return view.Backends, err
}

// quantile is the q-quantile of sorted waits.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
