package controller

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// endpointPrefix begins the incarnations of static endpoints; no pod UID contains a colon.
const endpointPrefix = "endpoint:"

// endpointLife names a life of a static endpoint.
func endpointLife(name string, life int64) router.Incarnation {
	return router.Incarnation(fmt.Sprintf("%s%s/%d", endpointPrefix, name, life))
}

// lifeNumber is the number in the incarnation of the endpoint of that name; 0: it is no such.
func lifeNumber(name, incarnation string) int64 {
	text, ok := strings.CutPrefix(incarnation, endpointPrefix+name+"/")
	if !ok {
		return 0
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0
	}
	return number
}

// podOf is the UID of the pod that an incarnation is a life of; false: of a static endpoint.
func podOf(incarnation router.Incarnation) (types.UID, bool) {
	uid, _, hasID := strings.Cut(string(incarnation), "/")
	if !hasID || strings.HasPrefix(uid, endpointPrefix) {
		return "", false
	}
	return types.UID(uid), true
}

// sightEndpoints gives every endpoint of the spec its incarnation: the one that the status names
// while its URL is the same and nobody vouches that it has ended, else a new one. lives is the
// largest number given so far. admits refuses addresses that the manager may not call; nil: none. The second result is the largest one given now.
func sightEndpoints(pool *v1alpha1.InferencePool, lives int64, admits func(sglang.BaseURL) error) ([]sighting, int64) {
	gone := confirmedGone(&pool.Spec)
	var list []sighting
	for _, endpoint := range pool.Spec.Backends.Endpoints {
		s := sighting{name: endpoint.Name, url: string(endpoint.URL), process: processLives}
		base, err := sglang.ParseBaseURL(s.url)
		if err == nil && admits != nil {
			err = admits(base)
		}
		if err != nil {
			s.unusable, s.message = v1alpha1.ReasonInvalidURL, err.Error()
			list = append(list, s)
			continue
		}
		s.url, s.engineKey = base.String(), base.HostPort()
		s.incarnation = knownLife(pool.Status.Backends, endpoint.Name, s.url)
		if _, ended := gone[s.incarnation]; ended || s.incarnation == "" {
			lives++
			s.incarnation = endpointLife(endpoint.Name, lives)
		}
		list = append(list, s)
	}
	return list, lives
}

// knownLife is the latest life of an endpoint in the status, if it is at the same URL; else empty.
func knownLife(entries []v1alpha1.BackendStatus, name, url string) router.Incarnation {
	var latest *v1alpha1.BackendStatus
	for i := range entries {
		number := lifeNumber(name, entries[i].Incarnation)
		if number > 0 && (latest == nil || number > lifeNumber(name, latest.Incarnation)) {
			latest = &entries[i]
		}
	}
	if latest == nil || latest.URL != url {
		return ""
	}
	return router.Incarnation(latest.Incarnation)
}

// confirmedGone is spec.confirmedGone as a set.
func confirmedGone(spec *v1alpha1.InferencePoolSpec) map[router.Incarnation]struct{} {
	set := make(map[router.Incarnation]struct{}, len(spec.ConfirmedGone))
	for _, incarnation := range spec.ConfirmedGone {
		set[router.Incarnation(incarnation)] = struct{}{}
	}
	return set
}
