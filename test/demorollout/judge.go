package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/test/rollouts"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// shownFaults is how many faults are shown one by one.
const shownFaults = 10

// judge shows the timeline and the figures, and says what is wrong with the run.
func (p *piece) judge() error {
	engines, err := execlog.ReadFiles(p.system.ExecutionLogs())
	if err != nil {
		return err
	}
	clients, err := execlog.ReadClientFiles(p.clientLog())
	if err != nil {
		return err
	}
	if err := p.show(engines); err != nil {
		return err
	}
	run := verdict.Run{Engines: engines, Clients: clients, Disturbed: p.system.EngineNames()}
	faults := append(run.Faults(), p.mislabelled(engines)...)
	for _, fault := range faults[:min(len(faults), shownFaults)] {
		p.say("FAULT: " + fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("the run is not good: %d faults by the engines' own records", len(faults))
	}
	p.say("the engines' own records show no fault: nothing ran twice, nothing was lost unsaid, and every turn ended on the version that its lease says, or says mixed")
	return nil
}

// show prints the timeline and draws it.
func (p *piece) show(engines []execlog.Record) (err error) {
	if p.to.IsZero() {
		return nil // the run broke off
	}
	line := rollouts.Read(p.history.All(), p.from, p.to, p.done)
	line.Starts = startsIn(engines)
	fmt.Println()
	if err := line.Print(os.Stdout, p.options.columns); err != nil {
		return err
	}
	fmt.Println()
	p.showFigures(engines)
	out, err := os.Create(p.options.svg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	p.say("the timeline is drawn in " + p.options.svg)
	return line.Draw(out, fmt.Sprintf("Three rollouts under traffic: %d backends, %g times as fast as real ones", p.options.local.Engines, p.options.local.Speed))
}

// showFigures says for each change how long nothing began, and what ran on which version.
func (p *piece) showFigures(engines []execlog.Record) {
	starts, ended := startsIn(engines), map[string]int{}
	for i := range engines {
		if r := &engines[i]; r.Event == execlog.Finish {
			ended[r.WeightVersion]++
		}
	}
	for _, d := range p.done {
		gap, _ := rollouts.Longest(starts, d.Begun, d.Ended)
		p.say(fmt.Sprintf("%-9s to %s: %5.1f s in all; the longest time in which nothing began: %4.0f ms",
			d.Strategy, d.Version, d.Ended.Sub(d.Begun).Seconds(), float64(gap)/float64(time.Millisecond)))
	}
	granted, mixed := map[string]int{}, map[string]int{}
	for _, t := range p.heardTurns() {
		granted[t.granted]++
		if t.mixed {
			mixed[t.granted]++
		}
	}
	for _, v := range slices.Sorted(maps.Keys(granted)) {
		p.say(fmt.Sprintf("%s: %d turns granted, %d of them say mixed; %d executions ended on it", v, granted[v], mixed[v], ended[v]))
	}
}

func startsIn(engines []execlog.Record) []time.Time {
	var starts []time.Time
	for i := range engines {
		if engines[i].Event == execlog.Start {
			starts = append(starts, engines[i].Time)
		}
	}
	return starts
}

func (p *piece) heardTurns() []turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.turns)
}

// mislabelled finds turns that ended on another version than their lease says, and do not say mixed.
func (p *piece) mislabelled(engines []execlog.Record) []string {
	ended := map[string]string{}
	for i := range engines {
		if r := &engines[i]; r.Event == execlog.Finish {
			ended[r.RID] = r.WeightVersion
		}
	}
	var faults []string
	for _, t := range p.heardTurns() {
		if on := ended[t.rid]; on != t.granted && !t.mixed {
			faults = append(faults, fmt.Sprintf("%s was granted under %q and ended on %q, and does not say mixed", t.rid, t.granted, on))
		}
	}
	return faults
}
