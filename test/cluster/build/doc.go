// Command build makes the binaries of the test cluster from the Go modules that this module and the
// one in runtime/ pin: the control plane (etcd, kube-apiserver and kubectl) that the tests and the
// demo stand on, and apart from it, since most people never need them, the nodes (everything else,
// down to runc). It needs the Go toolchain; runc needs a C compiler and libseccomp besides.
//
// The work takes minutes the first time, so the command says how far it is, and
// it leaves a stamp beside the binaries: a later run whose pins, toolchain and
// recipe are the same finds the stamp and builds nothing. Each binary appears
// under its name only when it is complete.
package main
