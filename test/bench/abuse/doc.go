// Command abuse measures what bad traffic does to others. A server in a process of its own serves one pool
// as the manager does, by TLS, to callers with a token, behind a door; a well-behaved client takes leases at a
// steady rate; and another process, at the lowest priority that the system has, since in life it runs on machines
// of its own, misbehaves in one of these ways:
//
//	slow_headers   connections by the thousand whose first call never comes to its end
//	slow_bodies    the same with a token, in the body
//	oversized      bodies far beyond the limit
//	malformed      connections that speak no HTTP, or no TLS
//	header_flood   headers of a megabyte
//	half_open      connections by the thousand that say nothing, made anew when they are cut
//	never_read     watch streams, told everything every second, that nobody reads
//	idle_15k       15,000 idle connections, made by TLS and kept
//
// The three that take no crowd are done by twenty, each ten times a second: evenly, and under a name that ends in
// _bursts all at one moment.
//
// For each it prints
//
//	figure abuse_NAME_p99_vs_quiet  the 99th percentile of the client's calls, against a quiet server's
//
// and over all
//
//	figure abuse_p99_vs_quiet       the worst of them
//	figure abuse_peak_rss_mib       the most memory that the server had, but for idle_15k
//	figure idle_15k_rss_mib         its memory with 15,000 idle connections
//
// The percentiles compared are those of the best round of each kind: an abuse goes on in every round of its own, and
// whatever else the machine does meanwhile only adds to either.
//
// A call of the client that fails, or a server that ends, is an error, not a figure.
package main
