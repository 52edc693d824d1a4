// Package conformance is a table of claims about the HTTP API of an SGLang server. Its test runs them against
// the simulator, or against any server:
//
//	go test ./internal/enginesim/conformance -run Conformance -count=1 \
//	    -engine-url=http://gpu-node:30000 -engine-grant=admin
//
// A row that needs more than a server that answers says so. Against a server of yours such rows are skipped
// unless -engine-grant names what they need:
//
//	admin    it pauses the engine, aborts requests or changes the weight version
//	weights  it loads weights; the path in -engine-model is loaded again
//	keys     the server has the keys given as -engine-api-key and -engine-admin-key
//
// Rows that need a server started in a certain way, or killed, run against the simulator only.
package conformance
