// Package tokenkey keeps the keys of lease tokens in a Secret that all replicas of the manager
// share, so that a token outlives the process that made it.
//
// The Secret is made on first start; whoever comes second uses what the first has made. Its keys
// are current and previous; tokens of both are taken, and made under current. Replicas look every
// minute. To rotate, write the new key as previous, since a replica that does not have it yet
// refuses its tokens; after two minutes swap the two; and remove the old one once the last lease
// made under it has ended.
package tokenkey
