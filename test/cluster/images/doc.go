// Command images makes the images of the test cluster: the manager and the simulated engine from
// their static binaries, FROM scratch; what every pod and the cluster's DNS run on; and the machine's
// own Python with the Python client, for pods that take leases.
package main
