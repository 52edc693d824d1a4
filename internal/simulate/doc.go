// Package simulate judges routing policies without a GPU. It plays a workload against a
// fleet of modelled engines in virtual time, with the real router deciding where sessions
// live, and compares that with other ways to decide (the arms) and with bounds that no
// way can beat.
//
// A [Scenario] is a fleet, a workload and how many tasks are in flight. An [Arm] is one way
// to place sessions. Everything is drawn from a seed, so equal arguments give equal numbers
// on every machine.
//
// The calibration of the scenarios is fixed by [TodaysPractice] alone: whole groups to
// replicas round-robin, which needs neither engine nor router, because where the tokens go
// does not depend on when.
package simulate
