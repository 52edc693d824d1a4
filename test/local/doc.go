// Package local runs all of Berthmaster on one Linux machine, without a
// cluster, a GPU or a container engine: a real kube-apiserver and etcd, the real
// manager with exactly the rights that config/rbac gives it, and simulated
// engines that each have a loopback address of their own.
//
// What a cluster would contribute besides, the package plays: it is the kubelet
// (it reports pod addresses, container ids and terminations) and nothing else.
// Whatever a user does goes through kubectl, so that what the demonstration
// shows can be typed by hand.
//
// Everything listens on 127.0.0.0/8. No process outlives the one that started
// it: each is in a process group of its own, is stopped in reverse order, and is
// killed by the kernel should its parent die first.
package local
