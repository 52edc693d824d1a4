// Package metrics tells Prometheus what the manager does. Figures that the router, the proxy and
// the prober keep anyway are read from their snapshots when somebody scrapes, never counted beside
// them; what nobody keeps, the durations of probes and engine calls and the writes of status, is
// counted here.
//
// Labels are bounded by what the cluster declares (pools, backends, senders) and by constants of this
// house. No label carries a session, a request, an incarnation or a weight version: those have no
// bound.
//
// families.go lists every family once; the collectors, the reference and the tests go by that list.
package metrics
