package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

const (
	// leaseWait is how long a turn waits for a lease while its sender is
	// fenced or no backend serves; far longer than either lasts here.
	leaseWait = 5 * time.Minute
	// attempts is how often one turn may be made again before something must
	// be wrong.
	attempts = 20
	// plantEvery is in how many sessions one carries the planted fault.
	plantEvery = 16
	// bytesPerToken is what the simulated engine takes a token of text to be.
	bytesPerToken = 4
)

// errImpatient is what the planted client cuts its requests with.
var errImpatient = errors.New("planted: unsure of the request")

// play makes the turns of one session, one after the other, and ends it.
func (p *Player) play(ctx context.Context, begun time.Time, number int, session Played) error {
	opened := begun.Add(p.compress(session.Arrival))
	if err := rest(ctx, opened); err != nil {
		return err
	}
	p.mu.Lock()
	p.played = append(p.played, session)
	p.mu.Unlock()
	own := p.config.Pool.Session(client.SessionConfig{
		ID: session.ID, Sender: session.Sender, Epoch: p.config.Epoch, Group: session.Group,
	})
	for i, turn := range session.Turns {
		if err := rest(ctx, opened.Add(p.compress(turn.NotBefore))); err != nil {
			return err
		}
		one := turnOf{player: p, session: own, id: session.ID, index: strconv.Itoa(i), sender: session.Sender, turn: turn}
		if i == 0 && number%plantEvery == 0 {
			one.plant = p.config.Plant
		}
		if err := one.make(ctx); err != nil {
			return fmt.Errorf("turn %d: %w", i, err)
		}
		if err := rest(ctx, time.Now().Add(p.compress(turn.ToolGap))); err != nil {
			return err
		}
	}
	if err := own.Close(ctx); err != nil {
		return err
	}
	p.ledger.add(session.Sender, func(c *Counts) { c.Ended++ })
	return nil
}

// turnOf is one turn on its way.
type turnOf struct {
	player  *Player
	session *client.Session
	id      string // of the session
	index   string // of the turn, as the engines and the logs know it
	sender  string
	turn    workload.Turn
	plant   Plant
}

// make generates the turn. It makes it again only when the client knows that
// nothing of the earlier execution runs or will.
func (t turnOf) make(ctx context.Context) error {
	request := t.request()
	if t.plant == PlantReplay {
		if err := t.replay(ctx, request); err != nil {
			return err
		}
	}
	for range attempts {
		result, err := t.session.Generate(ctx, request)
		if err == nil {
			return t.done(result)
		}
		failed, granted := errors.AsType[*client.OutcomeError](err)
		if !granted {
			return err
		}
		if err := t.tell(failed); err != nil {
			return err
		}
		if !failed.MayRepeat() {
			return err
		}
		t.player.ledger.add(t.sender, func(c *Counts) { c.Started++; c.Again++ })
	}
	return fmt.Errorf("was made %d times, and never well", attempts)
}

// replay is the planted fault: it cuts the request at its first token and leaves
// it to make to send it once more, without waiting to hear that it is dead.
func (t turnOf) replay(ctx context.Context, request client.Request) error {
	body := map[string]any{"stream": true}
	for name, value := range request.Body {
		if name != "stream" {
			body[name] = value
		}
	}
	request.Body = body
	request.Each = func([]byte) error { return errImpatient }
	_, err := t.session.Generate(ctx, request)
	if failed, granted := errors.AsType[*client.OutcomeError](err); granted {
		return t.tell(failed)
	}
	return err
}

func (t turnOf) request() client.Request {
	return client.Request{
		Body: map[string]any{
			"session_id": t.id,
			"text":       strings.Repeat("word", t.turn.Prompt*len("word")/bytesPerToken),
			"sampling_params": map[string]any{
				"max_new_tokens": t.turn.Output, "ignore_eos": true,
			},
		},
		Header: http.Header{"X-Turn": {t.index}},
		Wait:   leaseWait,
	}
}

// done notes a turn that ran to its end.
func (t turnOf) done(result *client.Result) error {
	if result.ReleaseErr != nil {
		return result.ReleaseErr
	}
	t.player.ledger.add(t.sender, func(c *Counts) { c.Started++; c.Done++ })
	if each := t.player.config.Each; each != nil {
		each(t.sender, result)
	}
	return t.log(result.Lease.RID, execlog.Succeeded)
}

// tell notes what the client was told of an execution that did not succeed.
func (t turnOf) tell(failed *client.OutcomeError) error {
	events := map[client.Outcome]execlog.ClientEvent{
		client.Aborted: execlog.GotAbort, client.NotSent: execlog.NotSent, client.Rejected: execlog.Rejected,
		client.Cancelled: execlog.Cancelled, client.Ambiguous: execlog.Ambiguous,
	}
	fates := map[client.Fate]execlog.ClientEvent{
		client.FateDead: execlog.Dead, client.FateIsolated: execlog.Isolated, client.FateFailed: execlog.Failed,
	}
	if err := t.log(failed.Lease.RID, events[failed.Outcome]); err != nil {
		return err
	}
	if fate, known := fates[failed.Fate]; known {
		return t.log(failed.Lease.RID, fate)
	}
	return nil
}

func (t turnOf) log(rid string, event execlog.ClientEvent) error {
	return t.player.config.Log.Append(execlog.ClientRecord{
		Time: time.Now(), Session: t.id, Turn: t.index, RID: rid, Event: event,
	})
}
