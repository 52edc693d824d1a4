// Package traffic replays sessions through a pool, as rollout workers would:
// every turn takes a lease and posts its request directly to the engine it was
// given, every session ends. One factor compresses the workload's time and is
// also the speed of the engines, so that the ratio of tool time to generation
// time stays what it was.
//
// What the clients are told about each execution goes to a log of theirs, which
// the verdict reads beside the engines' own.
package traffic
