package main

import (
	"github.com/berthmaster/berthmaster/internal/controller"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// proxied has the proxy go by what the controller knows of each pool.
func proxied(reconciler *controller.Reconciler) func(router.PoolKey) proxy.Settings {
	return func(pool router.PoolKey) proxy.Settings {
		p := reconciler.Proxied(pool)
		return proxy.Settings{
			Control: proxy.Control(p.Control), Keyless: proxy.Keyless(p.Keyless),
			EngineKey: p.Keys.API, AdminKey: p.Keys.Admin,
		}
	}
}
