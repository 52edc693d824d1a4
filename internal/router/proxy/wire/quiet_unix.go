//go:build unix

package wire

import (
	"errors"
	"net"
	"syscall"
)

// quiet reports whether a connection is open and has nothing to read, without waiting.
func quiet(c net.Conn) bool {
	sys, ok := c.(syscall.Conn)
	if !ok {
		return true // not a socket: nothing can be seen
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return false
	}
	var peek [1]byte
	var seen error
	err = raw.Read(func(fd uintptr) bool {
		_, _, seen = syscall.Recvfrom(int(fd), peek[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err == nil && (errors.Is(seen, syscall.EAGAIN) || errors.Is(seen, syscall.EWOULDBLOCK))
}
