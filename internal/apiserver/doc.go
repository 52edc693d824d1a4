// Package apiserver knows at which addresses the API server is, for whoever must not be led there: what pools name
// as engines is called from the manager's place in the network, which the API server may trust.
//
// They are those of the hosts that the manager is told of, resolved anew each time, and those behind the Service
// default/kubernetes, as API servers themselves keep them in the EndpointSlice of that name: the addresses of
// nodes of the control plane, most often. A load balancer before them that no client of the cluster is told of
// stays unknown.
package apiserver
