// Command rollout measures for how long a pool grants nothing while its weights change: eight engines
// that take half a second to load weights, the manager and a control plane as processes, and clients that
// generate all the time. It prints rollout_stall_ms_all_at_once and rollout_stall_ms_rolling, each the
// median of a few changes of the longest time between two grants.
package main
