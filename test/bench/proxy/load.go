package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

func body(more string) string {
	return `{"text":"` + strings.Repeat("a prompt of some length ", 40) + `","sampling_params":{"max_new_tokens":8}` + more + `}`
}

func newClient(conns int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: conns, MaxIdleConnsPerHost: conns, DisableCompression: true}}
}

func post(ctx context.Context, c *http.Client, base, body string, head ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/generate", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := c.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return resp, err
}

// exchange posts and reads the whole reply.
func exchange(ctx context.Context, c *http.Client, base, body string, head ...string) error {
	resp, err := post(ctx, c, base, body, head...)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// rate is how many requests a second come through, with so many at once.
func rate(ctx context.Context, o options, base string) (float64, error) {
	c := newClient(o.workers)
	defer c.CloseIdleConnections()
	text := body("")
	var all sync.WaitGroup
	counts, errs := make([]int, o.workers), make([]error, o.workers)
	began := time.Now()
	for i := range o.workers {
		all.Go(func() {
			session := fmt.Sprint("s", i)
			for time.Since(began) < o.lap() && errs[i] == nil {
				errs[i] = exchange(ctx, c, base, text, "X-Session-ID", session)
				counts[i]++
			}
		})
	}
	all.Wait()
	n := 0
	for _, k := range counts {
		n += k
	}
	return float64(n) / time.Since(began).Seconds(), errors.Join(errs...)
}

// compareRates alternates between the two, so that whatever else the machine does meets both.
func compareRates(ctx context.Context, o options, bareURL, proxyURL string) error {
	var ratios []float64
	for range o.rounds {
		b, err := rate(ctx, o, bareURL)
		if err != nil {
			return err
		}
		p, err := rate(ctx, o, proxyURL)
		if err != nil {
			return err
		}
		fmt.Printf("# bare %.0f/s, proxy %.0f/s\n", b, p)
		ratios = append(ratios, p/b)
	}
	figure("proxy_vs_reverseproxy", quantile(ratios, 0.5), "ratio")
	return nil
}

// firstBytes are the times to a stream's first byte, in microseconds, one request at a time.
func firstBytes(ctx context.Context, o options, base string) ([]float64, error) {
	c := newClient(1)
	defer c.CloseIdleConnections()
	text := body(`,"stream":true`)
	var out []float64
	var first [1]byte
	for began := time.Now(); time.Since(began) < o.lap(); {
		at := time.Now()
		resp, err := post(ctx, c, base, text, "X-Session-ID", "s")
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(resp.Body, first[:]); err != nil {
			return nil, err
		}
		out = append(out, float64(time.Since(at).Nanoseconds())/1e3)
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func compareFirstBytes(ctx context.Context, o options, engineURL, proxyURL string) error {
	var direct, through []float64
	for range o.rounds {
		d, err := firstBytes(ctx, o, engineURL)
		if err != nil {
			return err
		}
		p, err := firstBytes(ctx, o, proxyURL)
		if err != nil {
			return err
		}
		direct, through = append(direct, d...), append(through, p...)
	}
	figure("proxy_first_byte_added_us_p50", quantile(through, 0.5)-quantile(direct, 0.5), "us")
	figure("proxy_first_byte_added_us_p99", quantile(through, 0.99)-quantile(direct, 0.99), "us")
	return nil
}

// quantile is the value below which that share of the values lies.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// measureStreams opens the streams, each past its first event, and looks at the proxy's memory.
func measureStreams(ctx context.Context, o options, p *child.Process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newClient(0)
	text := body(`,"stream":true`)
	const openers = 64
	errs := make([]error, openers)
	var opening sync.WaitGroup
	var kept streams
	defer kept.close()
	for i := range openers {
		opening.Go(func() {
			for n := i; n < o.streams && errs[i] == nil; n += openers {
				errs[i] = open(ctx, c, p.URL()+proxyPath, text, n, &kept)
			}
		})
	}
	opening.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("open the streams: %w", err)
	}
	mib, err := p.Usage().ResidentMiB()
	if err != nil {
		return err
	}
	figure("streams_8k_mib", mib, "MiB")
	return nil
}

// streams are replies that are held open.
type streams struct {
	mu     sync.Mutex
	bodies []io.Closer // guarded by mu
}

func (s *streams) keep(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, c)
}

func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bodies {
		_ = b.Close()
	}
}

func open(ctx context.Context, c *http.Client, base, text string, n int, kept *streams) error {
	resp, err := post(ctx, c, base, text, "X-Session-ID", fmt.Sprint("s", n), holdHeader, "1") //nolint:bodyclose // streams.close does
	if err != nil {
		return err
	}
	kept.keep(resp.Body)
	first := make([]byte, len(event))
	_, err = io.ReadFull(resp.Body, first)
	return err
}
