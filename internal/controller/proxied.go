package controller

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// Proxied is what the proxy has to know of a pool beside its table.
type Proxied struct {
	// Control and Keyless are those of spec.proxy, with their defaults.
	Control v1alpha1.ProxyControl
	Keyless v1alpha1.ProxyKeyless
	// Keys are the engines' credentials as last read; empty: they have none.
	Keys sglang.Keys
}

// Proxied says what holds for requests through the proxy now. A pool that is not known gets the
// defaults. It does not block, and may be called from anywhere.
func (r *Reconciler) Proxied(pool router.PoolKey) Proxied {
	t := r.tenures.get(types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name})
	if t == nil {
		return proxiedOf(v1alpha1.ProxySpec{})
	}
	p := proxiedOf(t.proxySpec())
	p.Keys = r.keyring.get(t.uid).keys
	return p
}

func proxiedOf(spec v1alpha1.ProxySpec) Proxied {
	return Proxied{Control: cmp.Or(spec.Control, v1alpha1.ProxyRefuse), Keyless: cmp.Or(spec.Keyless, v1alpha1.KeylessNone)}
}

// proxies takes over what the spec says about the proxy.
func (t *tenure) proxies(spec v1alpha1.ProxySpec) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proxy = spec
}

func (t *tenure) proxySpec() v1alpha1.ProxySpec {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.proxy
}
