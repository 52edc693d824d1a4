// Package apitest holds the tests of the command line against a real kube-apiserver: what it applies,
// under which field manager, and what it says.
package apitest
