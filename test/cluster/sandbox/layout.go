package main

import (
	"fmt"
	"path/filepath"
)

const (
	// hostAddress is the machine beside the nodes on which the control plane and the tests run.
	hostAddress = "198.18.0.1"
	// serviceRange is where ClusterIPs come from; its first address is the API server's.
	serviceRange     = "198.19.0.0/16"
	apiServerService = "198.19.0.1"
	dnsService       = "198.19.0.10"
	// podRange covers the pods of all nodes.
	podRange = "198.18.64.0/18"
	// apiServerURL is how everybody reaches the API server.
	apiServerURL = "https://" + hostAddress + ":6443"
)

// node is one of the cluster's machines.
type node struct {
	name   string
	number int // from 1
}

// nodes are all of them. Two, so that there is a way from one to the other.
func nodes() []node { return []node{{name: "n1", number: 1}, {name: "n2", number: 2}} }

// nodeNamed finds a node.
func nodeNamed(name string) (node, error) {
	for _, n := range nodes() {
		if n.name == name {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("there is no node %q", name)
}

func (n node) address() string  { return fmt.Sprintf("198.18.0.%d", 10+n.number) }
func (n node) podRange() string { return fmt.Sprintf("198.18.%d.0/24", 64+n.number) }

// plug is the host's end of the node's network cable.
func (n node) plug() string { return "plug-" + n.name }

// layout says where the files of a cluster are. Both paths are absolute.
type layout struct {
	bin   string // the binaries
	state string // everything that a run writes
}

func (l layout) program(name string) string    { return filepath.Join(l.bin, name) }
func (l layout) images() string                { return filepath.Join(l.bin, "images") }
func (l layout) secret(name string) string     { return filepath.Join(l.state, "pki", name) }
func (l layout) kubeconfig(name string) string { return l.secret(name + ".kubeconfig") }
func (l layout) log(name string) string        { return filepath.Join(l.state, "log", name+".log") }
func (l layout) record(name string) string     { return filepath.Join(l.state, "run", name+".json") }
func (l layout) up() string                    { return filepath.Join(l.state, "run", "up") }
func (l layout) groups() string                { return filepath.Join(l.state, "run", "groups") }

// of is a file or folder of one node.
func (l layout) of(n node, elements ...string) string {
	return filepath.Join(append([]string{l.state, n.name}, elements...)...)
}
