package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// Transport makes one exchange with an engine; *wire.Client is one. A failure says by wire.WrittenOf
// whether the request may have been sent. It must never send twice.
type Transport interface {
	Do(ctx context.Context, base string, r *wire.Request) (*http.Response, error)
}

// Authorizer says whether a caller may use a sender of a pool. It is asked before the pool is looked for or
// the body read, once more after a request was held, and while a generation lasts.
type Authorizer interface {
	// Authorize returns nil or a *router.Refusal.
	Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error
	// Admit is Authorize, and returns what says later whether the caller still has the same rights: nil, or a
	// *router.Refusal. That the caller's credentials have expired since is no reason to refuse. It is called from
	// other goroutines, and ends with its context.
	Admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (still func(context.Context) error, err error)
}

// Keyless says what stands in for the session of a request that names none.
type Keyless string

// The values of Keyless. The empty one, as any other, means KeylessNone.
const (
	// KeylessNone: nothing does; the request has no affinity, and is counted.
	KeylessNone Keyless = "None"
	// KeylessAPIKey: each bearer token is a session, for black-box agents that are given a key each.
	KeylessAPIKey Keyless = "APIKey"
	// KeylessPrefix: requests whose prompt continues an earlier one share its session.
	KeylessPrefix Keyless = "Prefix"
)

// Config is what a proxy is made of.
type Config struct {
	// Pools finds the tables; required.
	Pools *router.Pools
	// Transport reaches the engines; nil: a wire.Client with its defaults.
	Transport Transport
	// Clock is read several times per request; nil: time.Now.
	Clock func() time.Time
	// Random feeds request ids; nil: the system's.
	Random io.Reader
	// Authorizer guards every call; nil: nobody is asked, for a server on loopback.
	Authorizer Authorizer
	// Refused is told of each connection that an engine refused, by which nothing was written, after the pool's
	// table has been; nil: nobody is. Whoever probes that engine has to read its version anew (R9). It must
	// not block.
	Refused func(pool router.PoolUID, incarnation router.Incarnation)
	// Observer is told of every step of a lease; nil: nobody is.
	Observer Observer
	// Settings are a pool's own, asked for once per request and more; nil: the zero Settings for all.
	Settings func(router.PoolKey) Settings
	// Limits: the zero value of each field stands for its default.
	Limits Limits
}

// Settings are what a pool's owner decides about its proxy.
type Settings struct {
	// Control says what becomes of calls that change the pool's engines; empty: ControlRefuse.
	Control Control
	// Keyless is what stands in for a missing session; empty: KeylessNone.
	Keyless Keyless
	// EngineKey is the api-key of the engines; empty: they have none. A client's own Authorization
	// header is for the proxy and never reaches an engine.
	EngineKey string
	// AdminKey is the engines' admin key, for ControlFanOut; empty: EngineKey is used.
	AdminKey string
}

// Limits bound what clients can make the proxy hold.
type Limits struct {
	// BodyBytes bounds one request's body; default 256 MiB.
	BodyBytes int64
	// SpoolDir is where bodies beyond 64 KiB go, as files without a name; empty: the system's
	// temporary directory.
	SpoolDir string
	// SpoolMemory bounds the bytes of all bodies in memory; default 256 MiB. Beyond it all of a body goes to
	// its file.
	SpoolMemory int64
	// SpoolBytes bounds the bytes of all bodies in files; default 16 GiB. Beyond it requests are answered
	// SpoolUnavailable.
	SpoolBytes int64
	// HeldPerPool bounds the requests that wait for a lease of one pool; default 16,384. Beyond it
	// they are answered Contended.
	HeldPerPool int
	// Silence is how long a client or an engine may be silent in the middle of an exchange; default
	// 2 h, and at least 1 h.
	Silence time.Duration
	// Upload is how long a client may be silent in the middle of its body; default 5 min.
	Upload time.Duration
	// FateWait bounds how long a client waits for the fate of an Ambiguous execution; default 5 min.
	FateWait time.Duration
	// Look is how often a held request looks whether waiting still has a prospect; default 1 s.
	Look time.Duration
	// Prefixes bounds the table of KeylessPrefix; default 65,536 blocks.
	Prefixes int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		BodyBytes: cmp.Or(l.BodyBytes, 256<<20), SpoolDir: l.SpoolDir,
		SpoolMemory: cmp.Or(l.SpoolMemory, 256<<20), SpoolBytes: cmp.Or(l.SpoolBytes, 16<<30), HeldPerPool: cmp.Or(l.HeldPerPool, 16384),
		Silence: cmp.Or(l.Silence, 2*time.Hour), Upload: cmp.Or(l.Upload, 5*time.Minute), FateWait: cmp.Or(l.FateWait, 5*time.Minute),
		Look: cmp.Or(l.Look, time.Second), Prefixes: cmp.Or(l.Prefixes, 65536),
	}
}

// leastSilence: a generation may be silent for long, and a client's few retries must not be burnt.
const leastSilence = time.Hour

// Validate names the first field that cannot be used.
func (c Config) Validate() error {
	switch {
	case c.Pools == nil:
		return errors.New("Pools: required")
	case c.Limits.Silence != 0 && c.Limits.Silence < leastSilence:
		return fmt.Errorf("Limits.Silence %v: must be at least %v", c.Limits.Silence, leastSilence)
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"BodyBytes", c.Limits.BodyBytes}, {"HeldPerPool", int64(c.Limits.HeldPerPool)}, {"FateWait", int64(c.Limits.FateWait)},
		{"SpoolMemory", c.Limits.SpoolMemory}, {"SpoolBytes", c.Limits.SpoolBytes}, {"Upload", int64(c.Limits.Upload)},
		{"Look", int64(c.Limits.Look)}, {"Prefixes", int64(c.Limits.Prefixes)},
	} {
		if f.value < 0 {
			return fmt.Errorf("Limits.%s: must not be negative", f.name)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Transport == nil {
		c.Transport = wire.New(wire.Config{})
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Settings == nil {
		c.Settings = func(router.PoolKey) Settings { return Settings{} }
	}
	c.Limits = c.Limits.withDefaults()
	return c
}
