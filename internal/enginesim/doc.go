// Package enginesim is a simulated SGLang server: its HTTP API, its states and its timing, without a GPU and
// without a model. docs/simulated-engine.md says for every endpoint what is faithful and what is simplified.
//
// # Vocabulary
//
// A request is what a client posts; it has one or more sequences (batches, samples), each an execution on one
// data-parallel rank. A request first passes the gate, which stands for the engine's tokenizer: there it parks
// while generation is paused and waits while weights are updated. Behind the gate its sequences belong to the
// schedulers, one model.Engine per rank. The engine's time is real time multiplied by Config.Speed; every
// duration in Config is engine time unless it says otherwise.
//
// # The lock
//
// Server.mu guards state, which is everything that changes. One goroutine, the driver, advances the models and
// wakes the handlers whose sequences got on; a handler never waits while it holds the lock. The execution log
// is the exception to "no I/O under the lock": its lines are written there so that no execution can begin
// before its start is on record.
//
// # Invariants
//
//	S1  A sequence is in state.sequences exactly from its start line to its finish line, or the process is gone.
//	S2  No request passes the gate while generation is paused or an update holds or wants the engine.
//	S3  The models are paused exactly while there is a reason to halt.
//	S4  The load snapshot of a halted engine is the one from before it halted.
package enginesim
