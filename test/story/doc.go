// Package story is what a pool's owner does to it while traffic flows: drain a
// backend and take it back, fence a sender and open it again, and lose an engine
// to a crash. The demo tells it to people, test/e2e asserts it.
//
// Each part acts as a user does, waits until the pool's status shows the effect,
// and notes the time in which the status promised that nothing ran. Whether
// that was so is judged later, from the engines' own records.
package story
