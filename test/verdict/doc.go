// Package verdict judges a run of the local system by what the engines
// themselves wrote down, not by what the system under judgement says.
//
// It finds fault with
//   - a turn that was executed again without leave, or ran to its end twice;
//   - a turn of the workload that never ran to its end;
//   - an execution that was lost and that no client was told about;
//   - a session that left a backend which was neither drained nor killed;
//   - an execution in a time for which the status promised that it did not run.
//
// It also counts what each backend did, for the table at the end of a run and
// for its comparison with whole-session round-robin.
package verdict
