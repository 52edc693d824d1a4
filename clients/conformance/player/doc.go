// Package player makes the Go client do the steps of conformance scenarios, whoever plays the pool.
package player
