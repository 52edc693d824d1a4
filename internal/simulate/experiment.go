package simulate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Plan is what to compare with what.
type Plan struct {
	Scenarios []Scenario
	// Arms must begin with today's practice, as FindArms has them.
	Arms []Arm
	// Seeds is how many workloads are drawn per scenario, from seed 1 on; at least 1.
	Seeds int
}

// Validate says why the plan cannot be carried out.
func (p Plan) Validate() error {
	switch {
	case len(p.Scenarios) == 0:
		return errors.New("no workload to simulate")
	case len(p.Arms) == 0 || p.Arms[0].Name != Today:
		return fmt.Errorf("the first arm must be %s, which the others are compared with", Today)
	case p.Seeds < 1:
		return fmt.Errorf("%d seeds: at least 1 is needed", p.Seeds)
	}
	return nil
}

// Compare plays every arm on every scenario and seed, as many at a time as GOMAXPROCS says,
// and summarises. The result depends on the plan alone. It fails with the first error in the
// order of the plan, or when ctx is done.
func (p Plan) Compare(ctx context.Context) (Report, error) {
	if err := p.Validate(); err != nil {
		return Report{}, err
	}
	draws := make([]draw, len(p.Scenarios)*p.Seeds)
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range jobs {
				draws[i] = p.draw(ctx, i)
			}
		})
	}
	for i := range draws {
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	return p.report(draws)
}

// draw is what all arms made of one workload.
type draw struct {
	results []Result // by arm
	floor   float64  // seconds
	err     error
}

// draw plays one scenario and seed; i counts seeds first.
func (p Plan) draw(ctx context.Context, i int) draw {
	s, seed := p.Scenarios[i/p.Seeds], uint64(i%p.Seeds)+1
	sessions, err := s.Sessions(seed)
	if err != nil {
		return draw{err: fmt.Errorf("%s, seed %d: %w", s.Name, seed, err)}
	}
	out := draw{floor: floor(s, sessions).Seconds()}
	for _, arm := range p.Arms {
		if err := ctx.Err(); err != nil {
			return draw{err: err}
		}
		result, err := play(s, arm, sessions, seed)
		if err != nil {
			return draw{err: fmt.Errorf("%s, %s, seed %d: %w", s.Name, arm.Name, seed, err)}
		}
		out.results = append(out.results, result)
	}
	return out
}

func (p Plan) report(draws []draw) (Report, error) {
	out := Report{Seeds: p.Seeds}
	for i, s := range p.Scenarios {
		seeds := draws[i*p.Seeds : (i+1)*p.Seeds]
		for _, d := range seeds {
			if d.err != nil {
				return Report{}, d.err
			}
		}
		out.Comparisons = append(out.Comparisons, compare(s, p.Arms, seeds))
	}
	return out, nil
}
