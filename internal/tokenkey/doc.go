// Package tokenkey keeps the keys of lease tokens in a Secret that all replicas of the manager
// share, so that a token outlives the process that made it.
//
// The Secret is made on first start; whoever comes second uses what the first has made. Its keys
// are current and previous. To rotate, move current to previous and write a new current:
// replicas look every minute, tokens of both keys are taken meanwhile, and previous may go once the
// last lease made under it has ended. A replica that does not have the new key yet refuses tokens
// under it, so write it as previous for two minutes before it becomes current.
package tokenkey
