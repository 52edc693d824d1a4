// Package field has tests only: what operators of such pools reported about health checks and
// pauses, replayed over HTTP with everything that takes part in it. Engines that keep an execution
// log, the prober, the settler, the lease API and the Go client talk through connections in memory,
// inside a bubble of virtual time, so that ten minutes of a paused engine take no time and no test
// depends on the machine.
//
// Reports about placement are in internal/router and internal/router/server, those about the proxy
// in internal/router/proxy, and those about what the operator does in internal/controller.
package field
