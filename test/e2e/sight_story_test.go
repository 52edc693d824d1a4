package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/metrics"
	"github.com/berthmaster/berthmaster/test/traces"
)

// Trace contexts that callers have before they come.
const (
	leasedCaller  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	proxiedCaller = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203332-01"
)

var _ = Describe("what it does can be seen", Ordered, func() {
	var (
		w *watched
		// executed are the starts that the engines wrote down.
		executed []execlog.Record
	)

	BeforeAll(func(ctx SpecContext) { w = watch(ctx) })

	It("on the page, by a person with a token, while sessions run and the leader changes", func(ctx SpecContext) {
		Expect(w.player.AwaitDone(ctx, 24)).To(Succeed())
		clickThrough(ctx, w)
	}, NodeTimeout(8*time.Minute))

	It("in the traces of callers that have one of their own", func(ctx SpecContext) {
		pool := w.client(leasedCaller)
		session := pool.Session(client.SessionConfig{ID: "traced", Sender: "train", Epoch: 1})
		_, err := session.Generate(ctx, client.Request{Wait: time.Minute, Body: map[string]any{"text": "hello", "sampling_params": map[string]any{"max_new_tokens": 4}}})
		Expect(err).NotTo(HaveOccurred())
		status, text := w.call(ctx, http.MethodPost, w.poolURL()+"/senders/train/proxy/generate",
			`{"text":"hello","sampling_params":{"max_new_tokens":4}}`, "Traceparent", proxiedCaller, "X-Session-ID", "proxied")
		Expect(status).To(Equal(http.StatusOK), text)
		w.quieten(ctx)
		records, err := execlog.ReadFiles(w.ExecutionLogs())
		Expect(err).NotTo(HaveOccurred())
		executed = slices.DeleteFunc(records, func(r execlog.Record) bool { return r.Event != execlog.Start })
		Expect(len(executed)).To(BeNumerically(">", w.player.Counts("").Done))
		Expect(w.player.Counts("").Done).To(BeNumerically(">", 48))
	}, NodeTimeout(5*time.Minute))

	It("of which each is one trace, from acquire to release, that the engine saw", func(ctx SpecContext) {
		Eventually(ctx, func() error { return everyExecutionIsOneTrace(executed, w.received.ByTrace()) }).WithTimeout(time.Minute).Should(Succeed())
	})

	It("in the metrics, family by family", func(ctx SpecContext) {
		leader, err := w.Leader(ctx)
		Expect(err).NotTo(HaveOccurred())
		var text string
		Eventually(ctx, func() string {
			_, text = w.call(ctx, http.MethodGet, "https://"+leader.Metrics+"/metrics", "")
			return text
		}).WithTimeout(time.Minute).Should(ContainSubstring("berthmaster_leading 1"))
		for _, family := range metrics.Families() {
			Expect(text).To(ContainSubstring("# TYPE "+family.Name+" "+string(family.Kind)+"\n"), family.Name)
		}
		for _, secret := range []string{"traced", "proxied", "sglang-3-"} {
			Expect(text).NotTo(ContainSubstring(secret), "a label that knows no bound")
		}
	})

	It("in the logs, each line with whom it concerns", func(ctx SpecContext) {
		var lines []line
		files, err := filepath.Glob(filepath.Join(w.Logs(), "manager-*.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(files)).To(BeNumerically(">=", 2))
		for _, file := range files {
			lines = append(lines, linesOf(file)...)
		}
		Expect(missing(lines)).To(BeEmpty())
		for _, kind := range []string{"granted", "renewed", "released", "generated"} {
			Expect(slices.ContainsFunc(lines, func(l line) bool { return l["msg"] == "lease: "+kind })).To(BeTrue(), kind)
		}
		seen := map[any]int{}
		for _, l := range lines {
			if l["msg"] == "lease: granted" || l["msg"] == "lease: released" {
				seen[l["rid"]]++
			}
		}
		for _, e := range executed {
			Expect(seen[e.RID]).To(BeNumerically(">=", 2), "execution %s has no line of its grant and of its release", e.RID)
		}
	})
})

// call makes a call as the worker; more are headers and their values.
func (w *watched) call(ctx context.Context, method, url, body string, more ...string) (int, string) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+w.worker)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	transport := &http.Transport{TLSClientConfig: w.trust.Clone()}
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport}).Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	Expect(err).NotTo(HaveOccurred())
	return reply.StatusCode, string(text)
}

// everyExecutionIsOneTrace compares what engines ran with the spans that came.
func everyExecutionIsOneTrace(executed []execlog.Record, byTrace map[string][]traces.Span) error {
	of := map[string]string{}
	for _, e := range executed {
		id, parent, ok := traces.Context(e.Traceparent)
		if !ok {
			return fmt.Errorf("the engine saw %q with execution %s", e.Traceparent, e.RID)
		}
		if other, twice := of[id]; twice {
			return fmt.Errorf("executions %s and %s are one trace", other, e.RID)
		}
		of[id] = e.RID
		if err := shapeOf(e, id, parent, byTrace[id]); err != nil {
			return fmt.Errorf("execution %s of session %s: %w", e.RID, e.Session, err)
		}
	}
	return nil
}

// shapeOf says what is wrong with the trace of an execution.
func shapeOf(e execlog.Record, id, parent string, spans []traces.Span) error {
	for _, s := range traces.Named(spans, "release") {
		if s.Attributes["berthmaster.rid"] != e.RID {
			return fmt.Errorf("the release is of %s", s.Attributes["berthmaster.rid"])
		}
	}
	switch {
	case strings.Contains(proxiedCaller, id):
		if exchange := traces.Named(spans, "generate"); len(exchange) != 1 || exchange[0].ID != parent {
			return fmt.Errorf("the engine hangs on %s, and the exchange is %v", parent, exchange)
		}
		return traces.Proxied(spans, proxiedCaller[36:52])
	case strings.Contains(leasedCaller, id):
		for _, name := range []string{"acquire", "release"} {
			if below := traces.Named(spans, name); len(below) != 1 || below[0].Parent != leasedCaller[36:52] {
				return fmt.Errorf("%s is not below the caller: %v", name, below)
			}
		}
		return nil
	default:
		return traces.Lease(spans)
	}
}

// line is a line of a log, with the pools that its process had taken over by then.
type line map[string]any

// linesOf reads a manager's log. A pool's lines need a term from the line on that says that it is led.
func linesOf(file string) (out []line) {
	GinkgoHelper()
	f, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	leads := false
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		l := line{}
		Expect(json.Unmarshal(scanner.Bytes(), &l)).To(Succeed(), "%s: %s", file, scanner.Text())
		leads = leads || l["msg"] == "leads"
		if strings.HasPrefix(fmt.Sprint(l["msg"]), "follows") {
			leads = false
		}
		l["led"] = leads
		out = append(out, l)
	}
	Expect(scanner.Err()).NotTo(HaveOccurred())
	return out
}

// missing lists lines without what they must say, at most a few.
func missing(lines []line) (out []string) {
	for _, l := range lines {
		var needs []string
		switch msg := fmt.Sprint(l["msg"]); {
		case strings.HasPrefix(msg, "lease: ") && strings.HasSuffix(msg, " refused"):
			needs = []string{"pool", "request", "reason"}
		case strings.HasPrefix(msg, "lease: "):
			needs = []string{"pool", "request", "session", "sender", "backend", "incarnation", "rid", "term", "epoch"}
		case strings.HasPrefix(msg, "engine: "):
			needs = []string{"pool", "term", "backend", "incarnation", "order"}
		case l["controller"] != nil && l["reconcileID"] != nil && l["led"] == true:
			needs = []string{"pool", "term"}
		}
		for _, key := range needs {
			if l[key] == nil && len(out) < 10 {
				out = append(out, fmt.Sprintf("no %s in %v", key, l))
			}
		}
	}
	return out
}
