package enginesim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// KeepAlive is how long, in real time, the engine keeps an idle connection, unless Config says otherwise.
const KeepAlive = 5 * time.Second

// Socket is an engine's listening socket. Its owner calls Serve.
type Socket struct {
	server   *Server
	listener net.Listener
	addr     string
	servers  []*http.Server
}

// Listen binds the engine to an address; port 0 chooses one. Connections are accepted at once and answered
// once Serve runs, which must follow: it is what closes the socket.
func (s *Server) Listen(addr string) (*Socket, error) {
	l, err := (&net.ListenConfig{}).Listen(s.alive, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("bind the engine: %w", err)
	}
	return &Socket{server: s, listener: l, addr: l.Addr().String()}, nil
}

// Addr is the address, host:port, that the engine is bound to.
func (k *Socket) Addr() string { return k.addr }

// URL is where clients reach the engine, without a slash at its end.
func (k *Socket) URL() string { return "http://" + k.addr }

// Serve answers until the engine ends, which cuts every connection, or the socket fails.
func (k *Socket) Serve() error {
	defer func() {
		for _, srv := range k.servers {
			_ = srv.Close() // the process is over; whoever is connected notices
		}
	}()
	for {
		failed := k.start()
		select {
		case <-k.server.gone:
			return nil
		case err := <-failed:
			return fmt.Errorf("serve %s: %w", k.addr, err)
		case <-k.server.refusals():
		}
		if err := k.refuse(); err != nil {
			return err
		}
	}
}

func (k *Socket) start() <-chan error {
	srv := &http.Server{
		Handler: k.server, IdleTimeout: k.server.cfg.KeepAlive, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	k.servers = append(k.servers, srv)
	failed := make(chan error, 1)
	listener := k.listener
	go func() {
		if err := srv.Serve(listener); !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return failed
}

// refuse closes the socket for as long as the faults in force say, and binds it again.
func (k *Socket) refuse() error {
	_ = k.listener.Close() // it is only the way to refuse
	k.servers[len(k.servers)-1].SetKeepAlivesEnabled(false)
	for {
		d := k.server.takeRefusal()
		if d == 0 {
			break
		}
		if wait(k.server.alive, k.server, d) != nil {
			return nil //nolint:nilerr // the engine has ended, which Serve notices next
		}
	}
	l, err := (&net.ListenConfig{}).Listen(k.server.alive, "tcp", k.addr)
	if err != nil {
		return fmt.Errorf("bind the engine again: %w", err)
	}
	k.listener = l
	return nil
}

// refusal is the fault of a socket that does not answer.
type refusal struct {
	wanted chan struct{} // holds a token while pending is above 0
	left   time.Duration
}

func (st *state) refuse(d time.Duration) {
	st.refusal.left += d
	select {
	case st.refusal.wanted <- struct{}{}:
	default:
	}
}

func (s *Server) refusals() <-chan struct{} { return s.st.refusal.wanted }

func (s *Server) takeRefusal() (d time.Duration) {
	s.change(func(st *state) {
		d, st.refusal.left = st.refusal.left, 0
	})
	return d
}
