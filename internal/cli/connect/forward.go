package connect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward opens connections to one port of a pod through the API server.
type Forward struct {
	config    *rest.Config
	namespace string
	pod       string
	port      int

	mu     sync.Mutex
	link   httpstream.Connection // guarded by mu; nil before the first connection
	opened int                   // guarded by mu
}

// NewForward forwards to a port of a pod. Nothing is sent before the first Dial. The caller closes it.
func NewForward(config *rest.Config, namespace, pod string, port int) *Forward {
	return &Forward{config: config, namespace: namespace, pod: pod, port: port}
}

// Dial opens a connection, whatever the address: it has the form that http.Transport asks for. An
// error says what the API server or the kubelet answered.
func (f *Forward) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	opened := make(chan result, 1)
	go func() {
		conn, err := f.open()
		opened <- result{conn, err}
	}()
	select {
	case r := <-opened:
		return r.conn, r.err
	case <-ctx.Done():
		go func() { // what comes too late is given back
			if r := <-opened; r.conn != nil {
				_ = r.conn.Close()
			}
		}()
		return nil, fmt.Errorf("port-forward to pod %s: %w", f.pod, ctx.Err())
	}
}

// Close ends all connections.
func (f *Forward) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.link != nil {
		_ = f.link.Close()
	}
}

func (f *Forward) open() (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.connect(); err != nil {
		return nil, fmt.Errorf("port-forward to pod %s: %w", f.pod, err)
	}
	f.opened++
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(f.port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(f.opened))
	complaints, err := f.link.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("port-forward to pod %s: %w", f.pod, err)
	}
	_ = complaints.Close() // its other direction stays open
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := f.link.CreateStream(headers)
	if err != nil {
		_ = complaints.Reset()
		return nil, fmt.Errorf("port-forward to pod %s: %w", f.pod, err)
	}
	return newConn(f.link, data, complaints, f.pod), nil
}

// connect makes the one connection to the API server that all streams share, and makes it again when
// it has ended.
func (f *Forward) connect() error {
	if f.link != nil {
		select {
		case <-f.link.CloseChan():
		default:
			return nil
		}
	}
	dialer, err := f.dialer()
	if err != nil {
		return err
	}
	link, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return err
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		_ = link.Close()
		return fmt.Errorf("the API server speaks %q instead of %q", protocol, portforward.PortForwardProtocolV1Name)
	}
	f.link = link
	return nil
}

// dialer speaks SPDY inside a WebSocket, which gateways let pass, and plain SPDY where the API server
// does not know that.
func (f *Forward) dialer() (httpstream.Dialer, error) {
	clients, err := kubernetes.NewForConfig(f.config)
	if err != nil {
		return nil, err
	}
	target := clients.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(f.namespace).Name(f.pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	tunnelled, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, f.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(tunnelled, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
