// Command sandbox runs a real Kubernetes cluster on one Linux machine: etcd and the control plane,
// two nodes with kubelet, containerd, runc, bridge network and kube-proxy, and cluster DNS. It
// needs root, the binaries of test/cluster/build, and the programs ip, nft and nsenter.
//
// All of it lives in namespaces of processes, mounts and network that descend from one process.
// When that process ends, or is killed, the kernel ends everything else; only empty control groups
// and the folder of logs stay, and the groups are removed by whoever waited.
//
//	sandbox check                   say what this machine lacks for a cluster, and fail if it does
//	sandbox up [-- COMMAND ...]     bring a cluster up; run COMMAND in it, or wait for the end
//	sandbox await                   wait until the cluster is up
//	sandbox down                    end it
//	sandbox exec COMMAND ...        run COMMAND beside the control plane: pods and services are reachable
//	sandbox load ARCHIVE ...        put images on every node
//	sandbox stop|start COMPONENT    take kube-apiserver (or another) away, and bring it back
//	sandbox cut|mend NODE           unplug a node's network, and plug it in again
//
// The cluster's addresses are those of 198.18.0.0/15, which RFC 2544 reserves for tests, and its
// network has no way out: no image is pulled, no packet leaves the machine.
//
// Nodes use control groups of version 1. A machine that has only version 2 is refused.
package main
