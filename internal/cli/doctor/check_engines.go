package doctor

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// checkEngines: an engine without its prefix cache gains nothing from sessions that come back to it.
func checkEngines(w *World) []Finding {
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(w.Engines)) {
		if e := w.Engines[name]; e.Err == nil && e.Info.RadixCacheDisabled {
			found = append(found, Finding{RadixCacheOff, Warning, "backend " + name,
				"its engine runs with --disable-radix-cache: sticky sessions are worthless there, every turn reads its whole context anew",
				"start the engine without that flag, or expect no cache hits"})
		}
	}
	return found
}

// checkVersions: a backend with other weights than the pool promises takes no leases.
func checkVersions(w *World) []Finding {
	if w.Live == nil || w.Live.PublishedVersion == "" {
		return nil
	}
	var found []Finding
	for _, b := range w.Live.Backends {
		if b.Retired || b.WeightVersion == "" || b.WeightVersion == w.Live.PublishedVersion || b.WeightVersion == w.Live.TargetVersion {
			continue
		}
		found = append(found, Finding{StaleVersion, Error, "backend " + b.Name,
			fmt.Sprintf("its engine has the weights %s, and the pool has published %s", b.WeightVersion, w.Live.PublishedVersion),
			"push the published weights to it (source External), or see why its update failed: kubectl berth rollout status"})
	}
	return found
}

// keyRejected: the engine answered that the pool's key does not open it.
func keyRejected(w *World, backend string) bool {
	e, asked := w.Engines[backend]
	return asked && sglang.Code(e.Err) == http.StatusUnauthorized
}

// checkKeys: a pool without the right key sees its engines as sick.
func checkKeys(w *World) []Finding {
	var found []Finding
	switch s := w.Secret; s.State {
	case SecretMissing:
		found = one(Finding{KeyMissing, Error, "spec.backends.credentialsSecretRef", "namespace " + w.Pool.Namespace + " has no Secret " + s.Name,
			"make it, with the engines' key as " + v1alpha1.CredentialsAPIKey})
	case SecretEmpty:
		found = one(Finding{KeyMissing, Error, "spec.backends.credentialsSecretRef", "the Secret " + s.Name + " has no entry " + v1alpha1.CredentialsAPIKey,
			"add it; an engine's --admin-api-key goes into " + v1alpha1.CredentialsAdminAPIKey})
	case SecretUnread:
		return nil // with which key the operator asks is not known
	case SecretNotNamed, SecretRead:
	}
	for _, name := range slices.Sorted(maps.Keys(w.Engines)) {
		if !keyRejected(w, name) {
			continue
		}
		do := "name the Secret with the engines' key in spec.backends.credentialsSecretRef"
		if w.Secret.State == SecretRead {
			do = "compare " + v1alpha1.CredentialsAPIKey + " in the Secret " + w.Secret.Name + " with the engine's --api-key"
		}
		found = append(found, Finding{KeyRejected, Error, "backend " + name, "its engine rejects the pool's key (401)", do})
	}
	return found
}
