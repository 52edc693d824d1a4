//go:build !unix

package wire

import "net"

// quiet cannot look here; the time limit on rest is what is left.
func quiet(net.Conn) bool { return true }
