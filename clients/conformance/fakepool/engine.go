package fakepool

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// engine plays one engine on a socket, byte by byte.
type engine struct {
	pool   *Pool
	name   string
	url    string
	script conformance.Engine
	socket io.Closer

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
}

func newEngine(p *Pool, name string, script conformance.Engine) (*engine, error) {
	e := &engine{pool: p, name: name, script: script, conns: map[net.Conn]struct{}{}}
	if script.Port == conformance.Closed {
		address, reserved, err := closedPort()
		if err != nil {
			return nil, err
		}
		e.url, e.socket = "http://"+address, reserved
		return e, nil
	}
	l, err := (&net.ListenConfig{}).Listen(p.life, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.url, e.socket = p.vault.scheme()+l.Addr().String(), l
	p.running.Go(func() { e.accept(p.vault.guard(l)) })
	return e, nil
}

func (e *engine) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // Close has closed it
		}
		e.mu.Lock()
		e.conns[conn] = struct{}{}
		e.mu.Unlock()
		e.pool.running.Go(func() {
			e.serve(conn)
			_ = conn.Close()
			e.mu.Lock()
			delete(e.conns, conn)
			e.mu.Unlock()
		})
	}
}

func (e *engine) close() {
	_ = e.socket.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.conns {
		_ = conn.Close()
	}
}

// serve takes the requests of one connection.
func (e *engine) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	rested := time.Time{}
	for {
		if _, err := in.Peek(1); err != nil {
			return // the client is done with it
		}
		a := &arrival{engine: e.name, idle: -1}
		if !rested.IsZero() {
			a.idle = time.Since(rested)
		}
		e.pool.seen.arrive(a)
		e.pool.trace.add("send")
		reply := scriptedReply(e.script.Replies, e.pool.seen.turn("engine "+e.name))
		if !e.take(in, a, reply) || !e.answer(conn, in, reply) {
			return
		}
		rested = time.Now()
	}
}

// take reads a request, or as much of it as the script says. It is false if the client went away.
func (e *engine) take(in *bufio.Reader, a *arrival, reply conformance.Reply) bool {
	if reply.Read != nil {
		_, err := io.CopyN(io.Discard, in, int64(*reply.Read))
		return err == nil
	}
	req, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	var body struct {
		RID string `json:"rid"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		e.pool.seen.fault("C11", "the engine's request is no JSON: "+err.Error())
	}
	e.pool.seen.complete(a, body.RID, req.URL.RequestURI(), req.Header)
	e.pool.trace.add("request")
	return true
}

// answer replies as the script says. It is false once the connection carries nothing more.
func (e *engine) answer(conn net.Conn, in *bufio.Reader, reply conformance.Reply) bool {
	if reply.DelaySeconds > 0 || reply.Until != "" {
		if !e.hold(conn, in, reply) {
			return false
		}
	}
	if _, err := conn.Write(encode(reply)); err != nil {
		return false
	}
	switch reply.Then {
	case conformance.Close:
		return false
	case conformance.Reset:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return false
	case conformance.Keep:
	}
	return true
}

// hold waits before a reply, and notices a client that does not.
func (e *engine) hold(conn net.Conn, in *bufio.Reader, reply conformance.Reply) bool {
	held := make(chan error, 1)
	e.pool.running.Go(func() {
		held <- e.pool.hold(e.pool.life, reply.DelaySeconds, reply.Until)
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // wakes the peek below
	})
	_, err := in.Peek(1)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		_ = conn.SetReadDeadline(time.Time{})
		return <-held == nil
	}
	e.pool.trace.add("hungup")
	return false
}

func scriptedReply(script []conformance.Reply, n int) conformance.Reply {
	for _, r := range script {
		if r.Times < 0 || n < max(r.Times, 1) {
			return r
		}
		n -= max(r.Times, 1)
	}
	return conformance.Reply{}
}
