// Package connect reaches what the command line talks to besides the API server: the router's lease
// API and the engines, in pods that a person's machine cannot reach by address.
//
// It goes through a port-forward of its own and not through the API server's proxy for services,
// which strips the Authorization header that the router asks for. The streams of the port-forward are
// used as connections directly; no port is opened on the person's machine.
package connect
