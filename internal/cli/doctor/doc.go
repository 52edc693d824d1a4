// Package doctor finds what is wrong with a pool, and says what to do about each.
//
// Look gathers what can be seen of it, from the API server, the router, the engines and the user's own
// credentials; Judge is pure and turns that into findings. What could not be looked at is a finding of its
// own, so that silence means health.
package doctor
