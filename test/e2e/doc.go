// Package e2e holds the stories of users, told on the local system: a real
// kube-apiserver, the real manager under its own rights, and simulated engines.
package e2e
