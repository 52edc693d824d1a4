package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// shownFaults is how many faults are shown one by one.
const shownFaults = 10

// errFaults is the verdict over a run that is not good.
var errFaults = errors.New("the run is not good")

// judge reads what engines and clients wrote down, shows the table and returns
// an error that wraps errFaults if there is anything wrong. The expected
// sessions are those that should have run to their end.
func (d *demo) judge(expected []workload.Session) error {
	engines, err := execlog.ReadFiles(d.system.ExecutionLogs())
	if err != nil {
		return err
	}
	clients, err := execlog.ReadClientFiles(d.clientLog())
	if err != nil {
		return err
	}
	var table strings.Builder
	err = verdict.Print(&table, verdict.Measured(d.backends, engines), verdict.RoundRobin(d.backends, d.sessions), d.disturbed()...)
	if err != nil {
		return err
	}
	d.stage.show(table.String())
	senders := map[string]string{}
	for _, session := range d.player.Sessions() {
		senders[session.ID] = session.Sender
	}
	faults := verdict.Run{
		Sessions: expected, Senders: senders, Engines: engines, Clients: clients,
		Disturbed: d.disturbed(), Quiet: d.story.Quiet(),
	}.Faults()
	counts := d.player.Counts("")
	d.stage.say(fmt.Sprintf("%d turns ran to their end, %d were made again after the earlier execution was known to be dead",
		counts.Done, counts.Again))
	for _, fault := range faults[:min(len(faults), shownFaults)] {
		d.stage.say("FAULT: " + fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %d faults by the engines' own records", errFaults, len(faults))
	}
	d.stage.say("the engines' own records show no fault: nothing ran twice, nothing was lost unsaid, no session moved without cause")
	return nil
}

// progress shows how far the traffic is, until over is closed.
func (d *demo) progress(over <-chan struct{}) {
	tick := time.NewTicker(progressPeriod)
	defer tick.Stop()
	total := workload.Requests(d.sessions)
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			counts := d.player.Counts("")
			d.stage.say(fmt.Sprintf("traffic: %d of %d turns, %d of %d sessions ended",
				counts.Done, total, counts.Ended, len(d.sessions)))
		}
	}
}
