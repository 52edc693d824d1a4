package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// DirectDial dials as the net package does, and gives up after patience: whether an address can be
// reached from here shows soon.
func DirectDial(patience time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: patience}).DialContext
}

// FirstOf asks directly, and through a port-forward where nothing of the request could be sent. It is
// for calls that only read.
type FirstOf struct {
	Direct, Forward http.RoundTripper
}

// RoundTrip makes the call. Where both ways fail it tells both reasons.
func (f FirstOf) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := f.Direct.RoundTrip(r)
	var dial *net.OpError
	if err == nil || !errors.As(err, &dial) || dial.Op != "dial" || r.Body != nil {
		return reply, err
	}
	reply, again := f.Forward.RoundTrip(r)
	if again != nil {
		return nil, fmt.Errorf("%w; %w", err, again)
	}
	return reply, nil
}
