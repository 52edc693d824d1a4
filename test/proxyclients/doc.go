// Command proxyclients runs clients that were not written for this project against the transparent
// proxy: the official openai packages for Python and Node, from their registries, and curl. They
// know a base URL and nothing else.
//
//	go run ./test/proxyclients [-cache .cache/proxyclients] [-only python,node,curl]
//
// Each client goes through the same scenarios. What it saw it checks itself; that every turn was
// executed once, and nothing is left counted, is checked here against the execution logs of the
// simulated engines. A client whose registry or interpreter cannot be reached is skipped, and said
// to be.
package main
