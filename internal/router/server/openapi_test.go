package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	validation "github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/responses"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// contract is docs/openapi.yaml as something that answers can be held to.
type contract struct {
	document  validator.Validator
	model     *v3.Document
	operation map[string]map[string]*v3.Operation // by path and method
}

// published reads the document once for all tests; reading it is slow.
var published = sync.OnceValues(readContract)

func readContract() (*contract, error) {
	raw, err := os.ReadFile("../../../docs/openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := libopenapi.NewDocument(raw)
	if err != nil {
		return nil, err
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(doc, config.WithStrictMode(), config.WithFormatAssertions())
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	out := &contract{document: v, model: &model.Model, operation: map[string]map[string]*v3.Operation{}}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		out.operation[path] = map[string]*v3.Operation{}
		for method, op := range item.GetOperations().FromOldest() {
			out.operation[path][method] = op
		}
	}
	return out, nil
}

// holds reports where an answer departs from the document: an undocumented status, content
// type, header or member, or a value out of bounds. A call that succeeded must itself have
// been a documented one.
func (c *contract) holds(req *http.Request, sent []byte, r reply) error {
	if r.reason() == string(ReasonNotFound) || r.reason() == string(ReasonMethodNotAllowed) {
		return c.schema("Problem", []byte(r.raw)) // these answer what is not a call
	}
	res := &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewBufferString(r.raw))}
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	if ok, errs := c.document.ValidateHttpResponse(again, res); !ok {
		return departure(errs)
	}
	if r.status >= 300 || r.results() != nil { // the entries of a batch may be refused one by one
		return nil
	}
	again.Body = io.NopCloser(bytes.NewReader(sent))
	if ok, errs := c.document.ValidateHttpRequest(again); !ok {
		return fmt.Errorf("the call succeeded although it is not documented: %w", departure(errs))
	}
	return nil
}

// schema holds one JSON value to a schema of the document, undocumented members included.
func (c *contract) schema(name string, raw []byte) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	var s *base.Schema
	if p := c.model.Components.Schemas.GetOrZero(name); p != nil {
		s = p.Schema()
	}
	ok, errs := responses.ValidateResponseSchema(&responses.ValidateResponseSchemaInput{
		Request: req, Schema: s, Version: 3.1, Options: []config.Option{config.WithStrictMode(), config.WithFormatAssertions()},
		Response: &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)),
		},
	})
	if !ok {
		return departure(errs)
	}
	return nil
}

func departure(errs []*validation.ValidationError) error {
	var out []error
	for _, e := range errs {
		out = append(out, errors.New(e.Error()))
	}
	return errors.Join(out...)
}

func theContract(t *testing.T) *contract {
	t.Helper()
	c, err := published()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheDocumentIsOpenAPI31(t *testing.T) {
	c := theContract(t)
	if ok, errs := c.document.ValidateDocument(); !ok {
		t.Error(departure(errs))
	}
	if c.model.Version != "3.1.0" {
		t.Error(c.model.Version)
	}
}

func TestTheDocumentHasExactlyTheReasonsOfTheServer(t *testing.T) {
	c := theContract(t)
	var documented, known []string
	reasons := c.model.Components.Schemas.GetOrZero("Problem").Schema().Properties.GetOrZero("reason").Schema()
	for _, n := range reasons.Enum {
		documented = append(documented, n.Value)
	}
	for r := range meanings() {
		known = append(known, string(r))
	}
	known = append(known, "Internal")
	if diff := cmp.Diff(known, documented, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Error(diff)
	}
}

func TestTheDocumentHasExactlyTheCallsOfTheServer(t *testing.T) {
	c := theContract(t)
	w := newWorld(t, 1)
	routes := 1 // the list of pools, which is below none of them
	for _, r := range w.server.byPath {
		routes += len(r.methods)
	}
	documented := 0
	for path, methods := range c.operation {
		documented += len(methods)
		if path == listPath {
			if _, ok := methods["get"]; !ok {
				t.Errorf("%s is not documented", path)
			}
			continue
		}
		_, rest, ok := split(path)
		form, _ := shape(rest)
		for method := range methods {
			if h := w.server.byPath[form].methods[strings.ToUpper(method)]; !ok || h == nil {
				t.Errorf("%s %s is documented and not served", method, path)
			}
		}
	}
	if documented != routes {
		t.Errorf("%d calls are documented, %d are served", documented, routes)
	}
}

// A check that accepts anything would hold any server to anything.
func TestTheContractNotices(t *testing.T) {
	c := theContract(t)
	w := newWorld(t, 1)
	good := w.lease("r1", "s1")
	body := ask("r1", "s1")
	for name, spoil := range map[string]func(*reply){
		"an undocumented status":       func(r *reply) { r.status = http.StatusAccepted },
		"an undocumented member":       func(r *reply) { r.raw = `{"colour":"red",` + r.raw[1:] },
		"an undocumented content type": func(r *reply) { r.header.Set("Content-Type", "text/plain") },
		"a member of the wrong kind":   func(r *reply) { r.raw = `{"requestID":7}` },
		"a member that is missing":     func(r *reply) { r.raw = `{}` },
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			r.header = good.header.Clone()
			spoil(&r)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.pool+"/leases", bodyOf(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if err := c.holds(req, nil, r); err == nil {
				t.Error("it does not")
			}
		})
	}
}

func TestAFaultOfTheServerIsDocumentedToo(t *testing.T) {
	c := theContract(t)
	w := newWorld(t, 1)
	p := w.server.problemOf(errors.New("nobody expects this"))
	if p.Status != http.StatusInternalServerError || p.Detail != "" {
		t.Errorf("%+v", p)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.schema("Problem", raw); err != nil {
		t.Error(err)
	}
}
