// Package workload describes what rollout workers ask of a pool: sessions of turns with
// tool calls between them. It makes such sessions from a seed and reads them from traces.
//
// A workload is a slice of [Session], ordered by arrival. Every number in it is a demand,
// not a measurement: how long a turn takes is decided by whoever serves it, in real or in
// virtual time. Tokens are counts; times are offsets, never wall-clock times.
//
//   - [Shape.Generate] draws sessions from distributions; [Bundled] is the shape of the
//     demo, made from published figures. The same seed gives the same sessions, and a
//     longer workload begins with the sessions of a shorter one.
//   - [ReadFile], [ReadCSV] and [ReadMooncake] read traces of real services. They refuse
//     what they do not understand with an [InputError] that names line and column.
package workload
