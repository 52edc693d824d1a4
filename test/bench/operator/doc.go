// The operator's benchmark runs the real manager against a real API server and a thousand simulated
// engines, and prints what the manager costs while nothing happens and how long an engine that became
// ready waits for its first lease.
//
// The engines share this process; the manager is one of its own, and what it costs is read from the
// kernel's accounts of it, so that the engines and the API server do not count. It is measured over ten
// pools of a hundred backends, and once more over a thousand pools of two.
package main
