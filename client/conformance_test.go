package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/fakepool"
)

// TestClientPassesEveryScenario plays the shared table with this client.
func TestClientPassesEveryScenario(t *testing.T) {
	table, err := conformance.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range table {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			fake, err := fakepool.Start(s)
			if err != nil {
				t.Fatal(err)
			}
			defer fake.Close()
			p := newPlayer(t, fake, s.Client)
			reports := make([]conformance.Report, 0, len(s.Do))
			for _, step := range s.Do {
				reports = append(reports, p.do(t.Context(), step))
			}
			violations, err := fake.Judge(reports)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				t.Error(v)
			}
		})
	}
}

// player makes this client do the steps of a scenario.
type player struct {
	t       *testing.T
	fake    *fakepool.Pool
	pool    *client.Pool
	session *client.Session
	last    *client.OutcomeError
}

func newPlayer(t *testing.T, fake *fakepool.Pool, c conformance.ClientSettings) *player {
	t.Helper()
	secret := func(text string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, nil }
	}
	pool, err := client.New(client.Config{
		BaseURL: fake.BaseURL(), Token: secret(fakepool.RouterToken), APIKey: secret(fakepool.EngineKey),
		Attempts: max(c.Attempts, 1), MaxReplyBytes: c.MaxReplyBytes,
		RetryFor:    time.Duration(c.RetryForSeconds * float64(time.Second)),
		CallTimeout: time.Duration(c.CallTimeoutSeconds * float64(time.Second)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	config := client.SessionConfig{
		ID: conformance.SessionID, Sender: conformance.Sender, SenderGeneration: conformance.SenderGeneration,
		Epoch: conformance.Epoch, Group: conformance.Group,
	}
	if c.LastBackend != "" {
		config.LastBackend = client.Backend{Name: c.LastBackend, Incarnation: c.LastBackend + "/1"}
	}
	return &player{t: t, fake: fake, pool: pool, session: pool.Session(config)}
}

// do does one step and reports of it.
func (p *player) do(ctx context.Context, step conformance.Step) conformance.Report {
	switch step.Call {
	case conformance.Generate, conformance.Stream:
		return p.generate(ctx, step)
	case conformance.Acquire:
		return p.acquire(ctx, step)
	case conformance.AwaitFate:
		ending, err := p.last.Lease.AwaitFate(ctx)
		if err != nil {
			return failure(err)
		}
		return conformance.Report{Result: "Done", Fate: string(ending.Fate)}
	case conformance.EndSession:
		return done(p.session.Close(ctx))
	case conformance.Pause:
		timer := time.NewTimer(time.Duration(step.Seconds * float64(time.Second)))
		defer timer.Stop()
		<-timer.C
		return conformance.Report{Result: "Done"}
	}
	p.t.Fatalf("no client can %q", step.Call)
	return conformance.Report{}
}

func done(err error) conformance.Report {
	if err != nil {
		return failure(err)
	}
	return conformance.Report{Result: "Done"}
}

func wait(step conformance.Step) time.Duration {
	return time.Duration(step.WaitSeconds * float64(time.Second))
}

var errLeft = errors.New("the caller left")

func (p *player) generate(ctx context.Context, step conformance.Step) conformance.Report {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if step.CancelOn != "" {
		go func() {
			if p.fake.Await(ctx, step.CancelOn) == nil {
				cancel()
			}
		}()
	}
	events := 0
	request := client.Request{
		Body: map[string]any{"input_ids": []int{1, 2, 3}}, RequestID: step.RequestID, Executions: step.Executions, Wait: wait(step),
	}
	if step.Call == conformance.Stream {
		request.Body["stream"] = true
		request.Each = func([]byte) error {
			events++
			if events == step.StopAfterEvents {
				return errLeft
			}
			return nil
		}
	}
	result, err := p.session.Generate(ctx, request)
	report := success(result)
	if err != nil {
		p.last, _ = errors.AsType[*client.OutcomeError](err)
		report = failure(err)
	}
	report.Events = events
	return report
}

func success(result *client.Result) conformance.Report {
	if result == nil {
		return conformance.Report{}
	}
	released := result.ReleaseErr == nil
	return conformance.Report{
		Result: "Succeeded", Backend: result.Lease.Backend.Name, OutputTokens: result.OutputTokens,
		WeightVersion: result.WeightVersion, Mixed: &result.Mixed, Released: &released,
	}
}

// failure says what an error of the client says.
func failure(err error) conformance.Report {
	report := conformance.Report{Result: "Error", Message: err.Error()}
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		report.Result, report.Reason, report.Outcome = "Refused", problem.Reason, string(problem.Outcome)
		report.Fate, report.Epoch = string(problem.Fate), problem.Epoch
	}
	if errors.Is(err, client.ErrUnanswered) {
		report.Result = "Unanswered"
	}
	if failed, ok := errors.AsType[*client.OutcomeError](err); ok {
		released, may := failed.ReleaseErr == nil, failed.MayRepeat()
		report.Result, report.Fate, report.Status = string(failed.Outcome), string(failed.Fate), failed.Status
		report.Released, report.MayRepeat = &released, &may
	}
	return report
}

func (p *player) acquire(ctx context.Context, step conformance.Step) conformance.Report {
	lease, err := p.pool.Acquire(ctx, client.AcquireRequest{
		RequestID: step.RequestID, SessionID: conformance.SessionID, Sender: conformance.Sender, Epoch: conformance.Epoch,
		SenderGeneration: conformance.SenderGeneration, Group: conformance.Group, Token: step.Token, Wait: wait(step),
	})
	if err != nil {
		return failure(err)
	}
	if _, err := lease.Release(ctx, client.Report{Outcome: client.NotSent}); err != nil {
		return failure(err)
	}
	return conformance.Report{Result: "Done", Backend: lease.Backend.Name}
}
