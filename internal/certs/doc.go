// Package certs keeps the certificates that the manager's ports show, and replaces them while streams go
// on: a connection keeps the certificate that it began with, and the next one gets the new.
//
// Files are read again every few seconds, which is how cert-manager's certificates are taken over. Without
// files, replicas share certificates of their own in a Secret:
//
//	ca.crt, ca.key            the authority that signs, for CALife
//	next-ca.crt, next-ca.key  its successor, published for Overlap before it signs anything
//	previous-ca.crt           its predecessor, until it expires
//	tls.crt, tls.key          what the ports show, for LeafLife
//
// Each is replaced after two thirds of its life. What clients trust is the bundle of all authorities; whoever
// reads it again within Overlap never meets a certificate that it does not trust. An authority may sign
// for the manager's own names and nothing else, so that a stolen key is of no use against other services.
//
// The bundle is published as a ConfigMap, where clients mount it, and owned by what they come for, so that
// it goes with the last of that.
package certs
