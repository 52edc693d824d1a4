// Package child runs parts of a benchmark as processes of their own, so that client, server and engine
// do not share a heap or a scheduler, and reads what the kernel accounts to a process.
package child
