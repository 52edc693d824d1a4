// Command build makes the binaries of the local control plane: etcd,
// kube-apiserver and kubectl, compiled from the Go modules that this module's
// go.mod and go.sum pin. It needs the Go toolchain and nothing else.
//
// The work takes minutes the first time, so the command says how far it is, and
// it leaves a stamp beside the binaries: a later run whose pins, toolchain and
// recipe are the same finds the stamp and builds nothing. Each binary appears
// under its name only when it is complete.
package main
