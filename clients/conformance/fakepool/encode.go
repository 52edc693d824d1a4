package fakepool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// inOrder is the reply of an engine with nothing to hide.
const inOrder = `{"text":"hi","output_ids":[11,12,13],"meta_info":{"id":"x","finish_reason":{"type":"stop","matched":1},` +
	`"prompt_tokens":5,"weight_version":"v7","completion_tokens":3,"output_token_logprobs":[[-0.5,11,null],[-0.25,12,null],[-0.125,13,null]]}}`

// encode writes a reply as the bytes of HTTP, cut where the script cuts it.
func encode(r conformance.Reply) []byte {
	var out bytes.Buffer
	switch {
	case r.Raw != nil:
		out.WriteString(*r.Raw)
	case len(r.Events) > 0:
		stream(&out, r)
	default:
		body := text(r.Body)
		if r.Body == nil {
			body = inOrder
		}
		head(&out, r, "application/json", fmt.Sprintf("Content-Length: %d", len(body)))
		out.WriteString(body)
	}
	if r.Cut == nil {
		return out.Bytes()
	}
	if *r.Cut < 0 {
		return out.Bytes()[:max(0, out.Len()+*r.Cut)]
	}
	return out.Bytes()[:min(*r.Cut, out.Len())]
}

func head(out *bytes.Buffer, r conformance.Reply, kind, length string) {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	fmt.Fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s\r\n", status, http.StatusText(status), kind, length)
	for name, value := range r.Header {
		fmt.Fprintf(out, "%s: %s\r\n", textproto.CanonicalMIMEHeaderKey(name), value)
	}
	out.WriteString("\r\n")
}

// stream writes server-sent events, each a chunk of its own.
func stream(out *bytes.Buffer, r conformance.Reply) {
	head(out, r, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked")
	for _, event := range r.Events {
		line := "data: " + text(event) + "\n\n"
		fmt.Fprintf(out, "%x\r\n%s\r\n", len(line), line)
	}
	out.WriteString("0\r\n\r\n")
}

// text is a value of the table as it goes over the wire.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, _ := json.Marshal(v) // it came from JSON
	return strings.TrimSpace(string(raw))
}
