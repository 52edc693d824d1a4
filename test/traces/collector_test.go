package traces

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is what is looked at of one.
type span struct {
	trace, id, parent, name string
	attributes              map[string]string
}

// receiver is an OTLP receiver over HTTP.
type receiver struct {
	url string

	mu    sync.Mutex
	spans []span // guarded by mu
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		raw, err := io.ReadAll(request.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || request.URL.Path != "/v1/traces" || proto.Unmarshal(raw, &sent) != nil {
			http.Error(w, "no spans", http.StatusBadRequest)
			return
		}
		r.take(&sent)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(served.Close)
	r.url = served.URL + "/v1/traces"
	return r
}

func (r *receiver) take(sent *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				one := span{
					trace: hex.EncodeToString(s.GetTraceId()), id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
					name: s.GetName(), attributes: map[string]string{},
				}
				for _, a := range s.GetAttributes() {
					one.attributes[a.GetKey()] = a.GetValue().GetStringValue()
				}
				r.spans = append(r.spans, one)
			}
		}
	}
}

// byTrace groups what was received.
func (r *receiver) byTrace() map[string][]span {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string][]span{}
	for _, s := range r.spans {
		out[s.trace] = append(out[s.trace], s)
	}
	return out
}
