package story

import (
	"context"
	"fmt"
	"time"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// Traffic is what the story needs to know of the sessions that run meanwhile.
type Traffic interface {
	// Started returns how many requests of a sender have been granted a lease.
	Started(sender string) int
	// Await waits until so many have been, or fails when traffic ends before.
	Await(ctx context.Context, sender string, started int) error
}

// Story is told once, part by part.
type Story struct {
	System  *local.System
	Traffic Traffic
	// Say is told what happens, one line at a time.
	Say func(line string)
	// Now reads the clock that the engines stamp their records with.
	Now func() time.Time

	history *local.History
	quiet   []verdict.Quiet
}

// Begin starts to record the pool's status. It comes before the other parts.
func (s *Story) Begin(ctx context.Context) (err error) {
	s.history, err = s.System.Record(ctx)
	return err
}

// Quiet returns the times for which the status promised that something did not
// run.
func (s *Story) Quiet() []verdict.Quiet { return s.quiet }

// Drain takes a backend out of service, waits until nothing runs there, and
// takes it back.
func (s *Story) Drain(ctx context.Context, name string) error {
	mark := s.history.Now()
	s.Say(fmt.Sprintf("drain %s: server-side apply of its one entry", name))
	if err := s.System.Drain(ctx, name); err != nil {
		return err
	}
	// The status says so before anything is done about it, however soon it is over.
	mark, err := s.history.After(ctx, mark, name+" to be draining", backendIs(name, v1alpha1.BackendDraining))
	if err != nil {
		return err
	}
	s.Say(fmt.Sprintf("  status: %s is Draining", name))
	mark, err = s.history.After(ctx, mark, name+" to be drained", backendIs(name, v1alpha1.BackendDrained))
	if err != nil {
		return err
	}
	from := s.Now()
	s.Say(fmt.Sprintf("  status: %s is Drained: nothing runs there", name))
	// Others have to go on while it stands still.
	if err := s.Traffic.Await(ctx, "", s.Traffic.Started("")+20); err != nil {
		return err
	}
	s.quiet = append(s.quiet, verdict.Quiet{What: "drained " + name, Backend: name, From: from, To: s.Now()})
	if err := s.System.Undrain(ctx, name); err != nil {
		return err
	}
	_, err = s.history.After(ctx, mark, name+" to serve again", backendIs(name, v1alpha1.BackendServing))
	if err != nil {
		return err
	}
	s.Say(fmt.Sprintf("  the entry is gone: %s serves again", name))
	return nil
}

// Fence shuts one sender out, waits until nothing of it runs while the other
// goes on, and lets it in again.
func (s *Story) Fence(ctx context.Context, fenced, other string) error {
	mark := s.history.Now()
	s.Say(fmt.Sprintf("fence %s: server-side apply of its one entry", fenced))
	if err := s.System.SetAccess(ctx, fenced, v1alpha1.SenderFenced); err != nil {
		return err
	}
	mark, err := s.history.After(ctx, mark, fenced+" to be fenced", senderIs(fenced, v1alpha1.SenderStateFenced))
	if err != nil {
		return err
	}
	from := s.Now()
	s.Say(fmt.Sprintf("  status: nothing of %s runs any more", fenced))
	if err := s.Traffic.Await(ctx, other, s.Traffic.Started(other)+20); err != nil {
		return fmt.Errorf("%s is to go on while %s is fenced: %w", other, fenced, err)
	}
	s.quiet = append(s.quiet, verdict.Quiet{What: "fenced " + fenced, Sender: fenced, From: from, To: s.Now()})
	s.Say(fmt.Sprintf("  %s went on meanwhile; open %s again", other, fenced))
	if err := s.System.SetAccess(ctx, fenced, v1alpha1.SenderOpen); err != nil {
		return err
	}
	if _, err := s.history.After(ctx, mark, fenced+" to be open", senderIs(fenced, v1alpha1.SenderStateOpen)); err != nil {
		return err
	}
	return s.Traffic.Await(ctx, fenced, s.Traffic.Started(fenced)+1)
}

// Crash kills an engine, reports its container terminated, and once the status
// shows it replaces the pod by a new one of the same name.
func (s *Story) Crash(ctx context.Context, name string) error {
	lost, err := s.System.Incarnation(name)
	if err != nil {
		return err
	}
	mark := s.history.Now()
	s.Say(fmt.Sprintf("kill the engine process of %s", name))
	if err := s.System.KillEngine(name); err != nil {
		return err
	}
	if err := s.System.ReportTerminated(ctx, name); err != nil {
		return err
	}
	mark, err = s.history.After(ctx, mark, name+" to be shown as ended", hasEnded(name, lost))
	if err != nil {
		return err
	}
	s.Say("  status: its engine has ended; replace the pod by a new one of the same name")
	if err := s.System.ReplacePod(ctx, name); err != nil {
		return err
	}
	born, err := s.System.Incarnation(name)
	if err != nil {
		return err
	}
	if _, err := s.history.After(ctx, mark, name+" to serve in its new life", servesAs(name, born)); err != nil {
		return err
	}
	s.Say(fmt.Sprintf("  %s serves in its new life, and the pool has not failed", name))
	return s.System.Until(ctx, "the pool to have survived", hasNotFailed)
}
