// Package cluster tells users' stories on a real cluster: the operator installed by its own manifests,
// engines in a StatefulSet, kubelets that start, drain and kill them, nodes that are cut off. It runs
// inside of the sandbox that test/cluster/sandbox makes, beside the control plane ("make e2e").
//
// Each story lets sessions run through the pool while it happens, and ends with the same questions:
// what the engines themselves wrote down (test/verdict), whether every count is back at zero, and what
// status and events said. The engines are those of config/samples/gpu with a simulated server in the
// place of SGLang, so that the sample's probes and its preStop hook are what is tested.
package cluster
