package player

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/clients/conformance"
)

// Stage is where a scenario is played.
type Stage interface {
	// Offer says how the pool is reached.
	Offer() conformance.Offer
	// Await waits until the run has come as far as a word says.
	Await(ctx context.Context, word string) error
	// Act does a step that is not the client's.
	Act(ctx context.Context, step conformance.Step) error
}

// Play does the steps of a scenario and returns a report of each. It fails if the client cannot be
// made, or the stage does not do its part.
func Play(ctx context.Context, stage Stage, s conformance.Scenario) ([]conformance.Report, error) {
	p := &player{
		stage: stage, sessions: map[string]*client.Session{}, kept: map[string]*client.Lease{},
		under: map[string]chan conformance.Report{}, settings: s.Client,
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	defer p.pool.Close()
	reports := make([]conformance.Report, 0, len(s.Do))
	for i, step := range s.Do {
		if step.Turn == "" {
			step.Turn = strconv.Itoa(i)
		}
		report, err := p.do(ctx, step)
		if err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i+1, step.Call, err)
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// player makes the client do steps.
type player struct {
	stage    Stage
	settings conformance.ClientSettings
	pool     *client.Pool
	sessions map[string]*client.Session
	kept     map[string]*client.Lease
	// under are the steps that go on, by name.
	under map[string]chan conformance.Report
	last  *client.Lease
}

func (p *player) open() error {
	offer, c := p.stage.Offer(), p.settings
	secret := func(text string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, nil }
	}
	var err error
	p.pool, err = client.New(client.Config{
		BaseURL: offer.BaseURL, Token: secret(offer.RouterToken), APIKey: secret(offer.EngineKey),
		CAFile: offer.Authorities, EngineCAFile: offer.Authorities,
		Attempts: max(c.Attempts, 1), MaxReplyBytes: c.MaxReplyBytes,
		RetryFor: seconds(c.RetryForSeconds), CallTimeout: seconds(c.CallTimeoutSeconds),
		Traceparent: func(context.Context) string { return c.Traceparent },
	})
	return err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// session is the one that a step is about.
func (p *player) session(step conformance.Step) *client.Session {
	name := sessionID(step)
	if p.sessions[name] == nil {
		config := client.SessionConfig{
			ID: name, Sender: conformance.Sender, SenderGeneration: conformance.SenderGeneration,
			Epoch: conformance.Epoch, Group: conformance.Group,
		}
		if last := p.settings.LastBackend; last != "" {
			config.LastBackend = client.Backend{Name: last, Incarnation: last + "/1"}
		}
		p.sessions[name] = p.pool.Session(config)
	}
	return p.sessions[name]
}

func sessionID(step conformance.Step) string {
	if step.Session == "" {
		return conformance.SessionID
	}
	return step.Session
}

// do does one step, or lets it begin, and reports of it. It fails if the stage does.
func (p *player) do(ctx context.Context, step conformance.Step) (conformance.Report, error) {
	done := conformance.Report{Result: "Done"}
	switch step.Call {
	case conformance.Owner:
		return done, p.stage.Act(ctx, step)
	case conformance.Await:
		return done, p.stage.Await(ctx, step.Word)
	case conformance.Join:
		ended := p.under[step.Of]
		if ended == nil {
			return conformance.Report{}, fmt.Errorf("nothing goes on as %q", step.Of)
		}
		return <-ended, nil
	case conformance.Generate, conformance.Stream, conformance.Acquire, conformance.Hold,
		conformance.AwaitFate, conformance.EndSession, conformance.Pause:
	}
	if step.As == "" {
		report, lease := p.call(ctx, step, p.session(step))
		if lease != nil {
			p.last = lease
		}
		return report, nil
	}
	ended, session := make(chan conformance.Report, 1), p.session(step)
	p.under[step.As] = ended
	go func() {
		report, _ := p.call(ctx, step, session)
		ended <- report
	}()
	return done, nil
}

// call does a step of the client's, and returns the lease if it was about one.
func (p *player) call(ctx context.Context, step conformance.Step, session *client.Session) (conformance.Report, *client.Lease) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if step.CancelOn != "" {
		go func() {
			if p.stage.Await(ctx, step.CancelOn) == nil {
				cancel()
			}
		}()
	}
	switch step.Call {
	case conformance.Generate, conformance.Stream:
		return generate(ctx, step, session)
	case conformance.Acquire, conformance.Hold:
		return p.acquire(ctx, step)
	case conformance.AwaitFate:
		return awaitFate(ctx, p.last), nil
	case conformance.EndSession:
		return done(session.Close(ctx)), nil
	case conformance.Pause:
		timer := time.NewTimer(seconds(step.Seconds))
		defer timer.Stop()
		<-timer.C
		return done(nil), nil
	case conformance.Join, conformance.Await, conformance.Owner:
	}
	return failure(fmt.Errorf("%w %q", errNoCall, step.Call)), nil
}

// errNoCall: a step is none of the client's.
var errNoCall = errors.New("no client can")

func done(err error) conformance.Report {
	if err != nil {
		return failure(err)
	}
	return conformance.Report{Result: "Done"}
}

func awaitFate(ctx context.Context, last *client.Lease) conformance.Report {
	ending, err := last.AwaitFate(ctx)
	if err != nil {
		return failure(err)
	}
	return conformance.Report{Result: "Done", Fate: string(ending.Fate)}
}

// errLeft is how a caller leaves a stream.
var errLeft = errors.New("the caller left")

func generate(ctx context.Context, step conformance.Step, session *client.Session) (conformance.Report, *client.Lease) {
	events := 0
	request := client.Request{
		RequestID: step.RequestID, Executions: step.Executions, Wait: seconds(step.WaitSeconds),
		Header: http.Header{"X-Turn": {step.Turn}},
		Body: map[string]any{
			"input_ids": []int{1, 2, 3}, "session_id": sessionID(step),
			"sampling_params": map[string]any{"max_new_tokens": cmp.Or(step.Tokens, 3), "ignore_eos": true},
		},
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
	result, err := session.Generate(ctx, request)
	report, lease := success(result)
	if err != nil {
		report = failure(err)
		if failed, ok := errors.AsType[*client.OutcomeError](err); ok {
			lease = failed.Lease
		}
	}
	if lease != nil {
		report.RID = lease.RID
	}
	report.Events, report.At = events, time.Now()
	return report, lease
}

func success(result *client.Result) (conformance.Report, *client.Lease) {
	if result == nil {
		return conformance.Report{}, nil
	}
	released := result.ReleaseErr == nil
	return conformance.Report{
		Result: "Succeeded", Backend: result.Lease.Backend.Name, OutputTokens: result.OutputTokens,
		WeightVersion: result.WeightVersion, Mixed: &result.Mixed, Released: &released,
	}, result.Lease
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
	if errors.Is(err, client.ErrUntrusted) {
		report.Result = "Untrusted"
	}
	if failed, ok := errors.AsType[*client.OutcomeError](err); ok {
		released, may := failed.ReleaseErr == nil, failed.MayRepeat()
		report.Result, report.Fate, report.Status = string(failed.Outcome), string(failed.Fate), failed.Status
		report.Backend, report.Released, report.MayRepeat = failed.Lease.Backend.Name, &released, &may
	}
	return report
}

// acquire asks for a lease, and gives it back unless it is to be kept.
func (p *player) acquire(ctx context.Context, step conformance.Step) (conformance.Report, *client.Lease) {
	token := step.Token
	if token == conformance.Kept {
		token = p.kept[step.RequestID].Token
	}
	lease, err := p.pool.Acquire(ctx, client.AcquireRequest{
		RequestID: step.RequestID, SessionID: sessionID(step), Sender: conformance.Sender, Epoch: conformance.Epoch,
		SenderGeneration: conformance.SenderGeneration, Group: conformance.Group, Token: token, Wait: seconds(step.WaitSeconds),
	})
	if err != nil {
		return failure(err), nil
	}
	report := conformance.Report{Result: "Done", Backend: lease.Backend.Name, RID: lease.RID, At: time.Now()}
	if step.Call == conformance.Hold {
		p.kept[step.RequestID] = lease
		return report, nil
	}
	if _, err := lease.Release(ctx, client.Report{Outcome: client.NotSent}); err != nil {
		return failure(err), nil
	}
	return report, nil
}
