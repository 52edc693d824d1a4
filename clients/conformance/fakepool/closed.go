package fakepool

import (
	"fmt"
	"io"
	"syscall"
)

// reservation keeps a port from everybody else.
type reservation struct{ socket int }

func (r reservation) Close() error { return syscall.Close(r.socket) }

// closedPort finds an address at which connections are refused, and keeps it so: it is bound, and
// nobody listens.
func closedPort() (string, io.Closer, error) {
	syscall.ForkLock.RLock() // between the two calls nobody may fork
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return "", nil, fmt.Errorf("open a socket: %w", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		_ = syscall.Close(socket)
		return "", nil, fmt.Errorf("bind a socket: %w", err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		_ = syscall.Close(socket)
		return "", nil, fmt.Errorf("name a socket: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port), reservation{socket}, nil
}
