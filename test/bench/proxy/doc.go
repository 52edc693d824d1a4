// Command proxy measures the transparent proxy against a bare httputil.ReverseProxy before the same
// engine: client, proxy and engine are processes of their own, on loopback, in one run.
//
//	go run ./test/bench/proxy [-seconds 3] [-rounds 5] [-streams 8000]
//
// It prints lines of the form "figure NAME VALUE UNIT":
//
//   - proxy_vs_reverseproxy: requests per second through the proxy over those through the bare
//     ReverseProxy, the median of rounds that alternate between the two.
//   - proxy_first_byte_added_us_p50 and _p99: how much later the first byte of a stream comes through
//     the proxy than from the engine itself.
//   - streams_8k_mib: resident memory of the proxy's process with so many open streams.
package main
