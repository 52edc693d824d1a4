package enginesim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// simPrefix is where the simulator's own endpoints are; faults and keys do not touch them.
const simPrefix = "/sim/"

// FaultKind is a way in which the engine misbehaves.
type FaultKind string

// The kinds of faults.
const (
	// FaultRefuse: new connections are refused for Millis; requests under way go on. Needs Listen.
	FaultRefuse FaultKind = "refuse"
	// FaultReset: the connection is reset once Bytes of the reply's body are out. The request is executed.
	FaultReset FaultKind = "reset"
	// FaultHang: requests are read and never answered. They are not executed.
	FaultHang FaultKind = "hang"
	// FaultSlow: requests are handled Millis late.
	FaultSlow FaultKind = "slow"
	// FaultStatus: requests are answered with Status, before or after they are executed, as When says.
	FaultStatus FaultKind = "status"
	// FaultHealth: /health and /health_generate answer Status at once, whatever the truth.
	FaultHealth FaultKind = "health"
	// FaultSchedulerDead: nothing is generated and whatever asks the scheduler hangs. With FaultHealth and
	// Status 200 the engine claims to be well meanwhile.
	FaultSchedulerDead FaultKind = "scheduler-dead"
	// FaultSchedulerHung: as FaultSchedulerDead, and the watchdog kills the server after its time.
	FaultSchedulerHung FaultKind = "scheduler-hung"
	// FaultUpdateFails: weight updates change nothing and reply success:false with Status 200 or 400.
	FaultUpdateFails FaultKind = "update-fails"
	// FaultWrongVersion: weight updates succeed and leave Version as the engine's version.
	FaultWrongVersion FaultKind = "wrong-version"
	// FaultExit: the process ends with Code when it has begun After further generation requests, or at once.
	FaultExit FaultKind = "exit"
	// FaultFreezeLoads: the clock of the load snapshot stands still.
	FaultFreezeLoads FaultKind = "freeze-loads"
)

// When says on which side of the execution a status is replied.
type When string

// The values of When. The zero value means Before.
const (
	Before When = "before"
	After  When = "after"
)

// Fault is one misbehaviour. Which fields matter depends on its kind.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Paths limits reset, hang, slow and status to requests whose path begins with one of them. Empty: all.
	Paths []string `json:"paths,omitempty"`
	// Count is how often it strikes before it is over. 0: until it is cleared.
	Count int `json:"count,omitempty"`
	// Bytes, of FaultReset.
	Bytes int64 `json:"bytes,omitempty"`
	// Millis, of FaultSlow and FaultRefuse: milliseconds of real time.
	Millis int `json:"millis,omitempty"`
	// Status, of FaultStatus (default 500), FaultHealth (default 503) and FaultUpdateFails (default 400).
	Status int `json:"status,omitempty"`
	// When, of FaultStatus.
	When When `json:"when,omitempty"`
	// Message, of FaultUpdateFails. Default "simulated failure".
	Message string `json:"message,omitempty"`
	// Version, of FaultWrongVersion.
	Version string `json:"version,omitempty"`
	// After, of FaultExit: how many more requests begin first.
	After int `json:"after,omitempty"`
	// Code, of FaultExit: the exit status. Default 1.
	Code int `json:"code,omitempty"`
}

var faultKinds = []FaultKind{
	FaultRefuse, FaultReset, FaultHang, FaultSlow, FaultStatus, FaultHealth, FaultSchedulerDead, FaultSchedulerHung,
	FaultUpdateFails, FaultWrongVersion, FaultExit, FaultFreezeLoads,
}

// Validate names what is wrong with a fault.
func (f Fault) Validate() error {
	f = f.withDefaults()
	if !slices.Contains(faultKinds, f.Kind) {
		return fmt.Errorf("kind %q is none of %v", f.Kind, faultKinds)
	}
	if min(int64(f.Count), f.Bytes, int64(f.Millis), int64(f.After)) < 0 {
		return errors.New("count, bytes, millis and after must not be negative")
	}
	if f.When != Before && f.When != After {
		return fmt.Errorf("when is %q, it must be before or after", f.When)
	}
	if err := f.validateStatus(); err != nil {
		return err
	}
	if f.Millis == 0 && (f.Kind == FaultRefuse || f.Kind == FaultSlow) {
		return errors.New("millis is missing")
	}
	return nil
}

func (f Fault) validateStatus() error {
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return fmt.Errorf("status is %d, it must be from 200 to 599", f.Status)
	}
	if f.Kind == FaultUpdateFails && f.Status != http.StatusOK && f.Status != http.StatusBadRequest {
		return fmt.Errorf("status is %d, a failed update replies 200 or 400", f.Status)
	}
	return nil
}

func (f Fault) withDefaults() Fault {
	orDefault(&f.When, Before)
	switch f.Kind {
	case FaultStatus:
		orDefault(&f.Status, http.StatusInternalServerError)
	case FaultHealth:
		orDefault(&f.Status, http.StatusServiceUnavailable)
	case FaultUpdateFails:
		orDefault(&f.Status, http.StatusBadRequest)
		orDefault(&f.Message, "simulated failure")
	case FaultExit:
		orDefault(&f.Code, 1)
	case FaultRefuse, FaultReset, FaultHang, FaultSlow, FaultSchedulerDead, FaultSchedulerHung, FaultWrongVersion, FaultFreezeLoads:
	}
	return f
}

func (f Fault) matches(path string) bool {
	return len(f.Paths) == 0 || slices.ContainsFunc(f.Paths, func(p string) bool { return strings.HasPrefix(path, p) })
}

// faults are those in force, in the order in which they were armed.
type faults struct {
	armed  []*Fault
	frozen float64 // seconds since 1970; 0: the loads' clock runs
}

// take strikes with the first fault of a kind that concerns path, or returns nil.
func (f *faults) take(kind FaultKind, path string) *Fault {
	for i, a := range f.armed {
		if a.Kind != kind || !a.matches(path) {
			continue
		}
		strike := *a
		if a.Count == 1 {
			f.armed = slices.Delete(f.armed, i, i+1)
		} else if a.Count > 1 {
			a.Count--
		}
		return &strike
	}
	return nil
}
