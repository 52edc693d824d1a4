package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/jsonscan"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// Control says what becomes of a call that changes engines.
type Control string

// The values of Control. The empty one, as any other, means ControlRefuse.
const (
	// ControlRefuse: it is refused, with the field of the spec that does the same.
	ControlRefuse Control = "Refuse"
	// ControlFanOut: it goes to every engine of the fleet at once, for trainers that know one URL. To
	// the operator such a pause or update is somebody else's: it gives the engine no leases while it
	// is paused, and reads its version anew.
	ControlFanOut Control = "FanOut"
)

// controlReply bounds what is read of an engine's answer to a control call, in bytes.
const controlReply = 1 << 20

// order is a control call's body, and where its rank_offset stands.
type order struct {
	body   *spool
	offset int64
	at     []span // empty: it has none
	// version is the weights' version that engines have once they have done it; empty: it says none.
	version router.Version
}

// Enter looks at the top only.
func (o *order) Enter(p *jsonscan.Path) jsonscan.Interest {
	if p.Depth() == 0 {
		return jsonscan.Look
	}
	return jsonscan.Skip
}

// Visit finds the rank_offset, and the version under either of its names.
func (o *order) Visit(p *jsonscan.Path, v jsonscan.Value) {
	if v.Kind == jsonscan.String && v.Complete == jsonscan.Whole && (p.Is("weight_version") || p.Is("new_version")) {
		o.version = router.Version(v.Text)
	}
	if p.Is("rank_offset") && v.Kind == jsonscan.Number {
		if n, err := strconv.ParseInt(string(v.Text), 10, 64); err == nil {
			o.offset, o.at = n, []span{{v.Start, v.End}}
		}
	}
}

// member is an engine that takes part, and what it answered.
type member struct {
	name, url string
	life      router.Incarnation
	offset    int64
	status    int // 0: it did not answer
	head      http.Header
	reply     []byte
	err       error
}

// fanOut sends the call to every engine at once, since some calls end only when all have joined.
// It succeeds if it does everywhere. What was done is not undone: the answer names those that
// failed, and whoever called has to bring the fleet together again.
func (h *Handler) fanOut(c *call) {
	o := &order{body: h.newSpool()}
	defer o.body.free()
	if err := h.receiveOrder(c, o); err != nil {
		h.giveUpReading(c, err)
		return
	}
	fleet, err := h.muster(c, o)
	if err != nil {
		h.giveUp(c, err)
		return
	}
	var all sync.WaitGroup
	for _, m := range fleet {
		all.Go(func() { h.command(c, o, m) })
	}
	all.Wait()
	h.teach(c, o, fleet)
	h.report(c, fleet)
}

func (h *Handler) receiveOrder(c *call, o *order) error {
	scanner := jsonscan.New(o)
	err := h.copyBody(c, io.MultiWriter(o.body, scanner))
	if err == nil && o.body.size > 0 {
		err = scanner.Close()
	}
	switch {
	case errors.Is(err, errBodyTooLarge):
		return tooLarge(o.body.max)
	case errors.Is(err, jsonscan.ErrSyntax):
		return &router.Refusal{Reason: router.ReasonInvalid, Field: "body", Detail: err.Error()}
	}
	c.sizes.request = o.body.size
	return err
}

// muster lists the fleet by name. Where the call has a rank_offset, each engine gets its own: that
// of the call, and behind it the ranks of the engines before.
func (h *Handler) muster(c *call, o *order) ([]*member, error) {
	var fleet []*member
	for _, b := range c.table.Snapshot(h.cfg.Clock()).Backends {
		if !b.Retired {
			fleet = append(fleet, &member{name: string(b.Name), url: b.URL, life: b.Incarnation})
		}
	}
	if len(fleet) == 0 {
		return nil, &router.Refusal{Reason: router.ReasonNoBackend, Detail: "the pool has no backend", RetryAfter: time.Second}
	}
	slices.SortFunc(fleet, func(a, b *member) int { return cmp.Compare(a.name, b.name) })
	if len(o.at) == 0 {
		return fleet, nil
	}
	next := o.offset
	for _, m := range fleet {
		ranks, err := h.ranks(c, m)
		if err != nil {
			return nil, &router.Refusal{Reason: reasonControl, Detail: "nothing was sent: " + m.name + " does not say how many ranks it has: " + err.Error()}
		}
		m.offset = next
		next += ranks
	}
	return fleet, nil
}

// ranks is how many ranks of a process group an engine takes: one for each of its tensor-parallel
// workers.
func (h *Handler) ranks(c *call, m *member) (int64, error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), h.cfg.Limits.FateWait)
	defer cancel()
	head := http.Header{}
	h.identify(c, head)
	resp, err := h.cfg.Transport.Do(ctx, m.url, &wire.Request{Method: http.MethodGet, Target: "/server_info", Header: head})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var info struct {
		TPSize int64 `json:"tp_size"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, controlReply)).Decode(&info); err != nil {
		return 0, fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	if info.TPSize < 1 {
		return 0, fmt.Errorf("tp_size is %d", info.TPSize)
	}
	return info.TPSize, nil
}

// command sends the call to one engine.
func (h *Handler) command(c *call, o *order, m *member) {
	head := make(http.Header, len(c.r.Header)+1)
	passed(c.r.Header, head)
	h.identifyAdmin(c, head)
	q := &wire.Request{Method: c.r.Method, Target: target(c), Header: head}
	if o.body.size > 0 {
		q.Body, q.Length = splice(o.body, o.at, strconv.FormatInt(m.offset, 10))
	}
	resp, err := h.cfg.Transport.Do(c.r.Context(), m.url, q)
	if err != nil {
		m.err = err
		return
	}
	defer resp.Body.Close()
	m.status, m.head = resp.StatusCode, resp.Header
	m.reply, m.err = io.ReadAll(io.LimitReader(resp.Body, controlReply))
}

func (h *Handler) identifyAdmin(c *call, head http.Header) {
	h.identify(c, head)
	if key := h.cfg.Settings(c.pool).AdminKey; key != "" {
		head["Authorization"] = []string{"Bearer " + key}
	}
}

// failure says why the engine did not do what it was asked; empty: it did. Some answers decline
// with status 200.
func (m *member) failure() string {
	if m.err != nil {
		return m.err.Error()
	}
	var said struct {
		Success *bool  `json:"success"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(m.reply, &said) // an answer of another form says nothing against it
	switch {
	case m.status != http.StatusOK:
		return fmt.Sprintf("status %d %.200s", m.status, said.Message)
	case said.Success != nil && !*said.Success:
		return fmt.Sprintf("declined: %.200s", said.Message)
	}
	return ""
}

// teach tells the router at once what weights the engines run after an update. One that failed may
// have loaded some of them: what it runs has to be read anew.
func (h *Handler) teach(c *call, o *order, fleet []*member) {
	if c.route.instead != byWeights {
		return
	}
	for _, m := range fleet {
		switch {
		case m.failure() != "":
			c.table.Reloaded(m.life, "", h.cfg.Clock())
		case o.version != "":
			c.table.Reloaded(m.life, o.version, h.cfg.Clock())
		}
	}
}

// report answers with the first engine's reply if all did it, and with a list of the others if not.
func (h *Handler) report(c *call, fleet []*member) {
	var failed []string
	for _, m := range fleet {
		if why := m.failure(); why != "" {
			failed = append(failed, m.name+": "+why)
		}
	}
	if len(failed) > 0 {
		h.giveUp(c, &router.Refusal{Reason: reasonControl,
			Detail: fmt.Sprintf("%d of %d engines did not do it: %s", len(failed), len(fleet), strings.Join(failed[:min(len(failed), 8)], "; "))})
		return
	}
	first := fleet[0]
	passed(first.head, c.w.Header())
	c.w.Header().Del("Content-Length") // of a reply that was cut at its bound it would be wrong
	c.sizes.reply = int64(len(first.reply))
	h.measure(c, labelControlled)
	_, _ = c.w.Write(first.reply)
}
