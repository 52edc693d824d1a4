package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// object is a JSON object as clients see it.
type object = map[string]any

// reply is an answer of the server.
type reply struct {
	status int
	header http.Header
	body   object
	raw    string
}

func (r reply) text(path ...string) string {
	var v any = r.body
	for _, p := range path {
		m, _ := v.(object)
		v = m[p]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (r reply) reason() string { return r.text("reason") }

// do makes a call; body is nil, a string sent as it is, or a value sent as JSON.
func (w *world) do(method, url string, body any) reply {
	w.t.Helper()
	r, err := w.try(w.t.Context(), method, url, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) try(ctx context.Context, method, url string, body any) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bodyOf(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	return w.send(req)
}

// send makes a call and holds its answer to the published document.
func (w *world) send(req *http.Request) (reply, error) {
	var sent []byte
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return reply{}, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return reply{}, err
		}
	}
	res, err := w.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	out := reply{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			return out, fmt.Errorf("%s %s answered %q: %w", req.Method, req.URL, raw, err)
		}
	}
	c, err := published()
	if err != nil {
		return out, err
	}
	if err := c.holds(req, sent, out); err != nil {
		return out, fmt.Errorf("%s %s answered %d %s: not as docs/openapi.yaml says: %w", req.Method, req.URL, out.status, raw, err)
	}
	return out, nil
}

func bodyOf(body any) io.Reader {
	switch v := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return bytes.NewReader(raw)
	}
}

// ask is the body of an acquire by train; more overrides fields, nil removes one.
func ask(id, session string, more ...object) object {
	o := object{"requestID": id, "sessionID": session, "sender": "train", "senderGeneration": 3, "epoch": 1}
	for _, m := range more {
		for k, v := range m {
			if o[k] = v; v == nil {
				delete(o, k)
			}
		}
	}
	return o
}

func (w *world) acquire(id, session string, more ...object) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases", ask(id, session, more...))
}

// lease acquires and demands a new lease.
func (w *world) lease(id, session string, more ...object) reply {
	w.t.Helper()
	r := w.acquire(id, session, more...)
	if r.status != http.StatusCreated {
		w.t.Fatalf("acquire %s: %d %s", id, r.status, r.raw)
	}
	return r
}

func (w *world) renew(id string, body any) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases/"+id+"/renew", body)
}

func (w *world) release(id string, body any) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases/"+id+"/release", body)
}

func want(t *testing.T, r reply, status int, reason string) {
	t.Helper()
	if r.status != status || r.reason() != reason {
		t.Fatalf("got %d %s, want %d %s: %s", r.status, r.reason(), status, reason, r.raw)
	}
}
