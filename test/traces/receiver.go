package traces

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is what is looked at of one.
type Span struct {
	// Trace, ID and Parent are in hexadecimal; Parent is empty of a root.
	Trace, ID, Parent string
	Name              string
	Attributes        map[string]string
}

// Receiver takes spans as OTLP over HTTP. Whoever starts it closes it.
type Receiver struct {
	server   *http.Server
	endpoint string

	mu    sync.Mutex
	spans []Span // guarded by mu
}

// Receive starts a receiver on a free port of the loopback interface.
func Receive(ctx context.Context) (*Receiver, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("receiver of spans: %w", err)
	}
	r := &Receiver{endpoint: "http://" + listener.Addr().String() + "/v1/traces"}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // until Close
	return r, nil
}

// Endpoint is the URL that takes spans.
func (r *Receiver) Endpoint() string { return r.endpoint }

// Close ends it; what it has received stays.
func (r *Receiver) Close() { _ = r.server.Close() }

// errNoSpans: what was sent is something else.
var errNoSpans = errors.New("not a request to export spans")

// ServeHTTP takes a batch of spans.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var sent collector.ExportTraceServiceRequest
	raw, err := io.ReadAll(request.Body)
	if err == nil && request.URL.Path != "/v1/traces" {
		err = errNoSpans
	}
	if err == nil {
		err = proto.Unmarshal(raw, &sent)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.take(&sent)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *Receiver) take(sent *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.spans = append(r.spans, spanOf(s))
			}
		}
	}
}

func spanOf(s *trace.Span) Span {
	out := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Attributes: map[string]string{},
	}
	for _, a := range s.GetAttributes() {
		out.Attributes[a.GetKey()] = textOf(a.GetValue())
	}
	return out
}

func textOf(v *common.AnyValue) string {
	if number, ok := v.GetValue().(*common.AnyValue_IntValue); ok {
		return strconv.FormatInt(number.IntValue, 10)
	}
	return v.GetStringValue()
}

// ByTrace groups what was received.
func (r *Receiver) ByTrace() map[string][]Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string][]Span{}
	for _, s := range r.spans {
		out[s.Trace] = append(out[s.Trace], s)
	}
	return out
}
