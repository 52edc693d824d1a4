package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	poolPath = "/v1alpha1/namespaces/bench/inferencepools/policy"
	// bearer is the token that the server takes.
	bearer = "Bearer well-behaved"
	// workers make the calls of the well-behaved client, on a connection each.
	workers = 8
)

// client takes leases and gives them back, at a steady rate.
type client struct {
	base string
	http *http.Client
}

func newClient(address string) *client {
	return &client{base: "https://" + address + poolPath, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		MaxIdleConnsPerHost: workers, TLSClientConfig: trusting(),
	}}}
}

// trusting looks at no certificate: whose it is does not change what a handshake costs the server.
func trusting() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// p99s are the 99th percentiles of some rounds.
func (c *client) p99s(ctx context.Context, o *options) ([]time.Duration, error) {
	var out []time.Duration
	for range o.rounds {
		all, err := c.round(ctx, o)
		if err != nil {
			return nil, err
		}
		slices.Sort(all)
		out = append(out, all[len(all)*99/100])
	}
	return out, nil
}

// round is how long each call of a round took. An acquire counts from when it was due, so that a stall is not
// hidden by sending less meanwhile.
func (c *client) round(ctx context.Context, o *options) ([]time.Duration, error) {
	var wg sync.WaitGroup
	times, errs := make([][]time.Duration, workers), make([]error, workers)
	began := time.Now()
	period := time.Duration(workers / o.rate * float64(time.Second))
	for i := range workers {
		wg.Go(func() {
			first := began.Add(period * time.Duration(i) / workers)
			times[i], errs[i] = c.work(ctx, fmt.Sprint(began.UnixNano(), "-", i), first, period, began.Add(o.length))
		})
	}
	wg.Wait()
	return slices.Concat(times...), errors.Join(errs...)
}

// work makes the calls of one worker.
func (c *client) work(ctx context.Context, name string, first time.Time, period time.Duration, end time.Time) ([]time.Duration, error) {
	var out []time.Duration
	wait := time.NewTimer(0)
	defer wait.Stop()
	for due, n := first, 0; due.Before(end); due, n = due.Add(period), n+1 {
		wait.Reset(time.Until(due))
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		id := fmt.Sprint(name, "-", n)
		var lease struct{ Token string }
		if err := c.call(ctx, "/leases", acquire(id), http.StatusCreated, &lease); err != nil {
			return nil, err
		}
		acquired := time.Now()
		if err := c.call(ctx, "/leases/"+id+"/release", `{"token":"`+lease.Token+`","outcome":"Succeeded"}`, http.StatusOK, nil); err != nil {
			return nil, err
		}
		out = append(out, acquired.Sub(due), time.Since(acquired))
	}
	return out, nil
}

func acquire(id string) string {
	return `{"requestID":"` + id + `","sessionID":"` + id + `","sender":"train","senderGeneration":0,"epoch":1}`
}

func (c *client) call(ctx context.Context, path, body string, want int, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", bearer)
	reply, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if reply.StatusCode != want {
		return fmt.Errorf("%s: answered %s: %s", path, reply.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
