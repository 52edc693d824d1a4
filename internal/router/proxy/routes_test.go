package proxy

import (
	"net/http"
	"slices"
	"testing"
)

func TestNoRouteThatChangesSomethingIsCalledByAMethodThatPagesMayUse(t *testing.T) {
	changing := 0
	for path, r := range withMethods(routes(), anybody) {
		if r.methods == nil {
			t.Errorf("%s takes any method", path)
		}
		if r.kind == informs || r.kind == health {
			continue
		}
		changing++
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
			if slices.Contains(r.methods, method) {
				t.Errorf("%s %s would change something", method, path)
			}
		}
	}
	if changing < 30 {
		t.Errorf("%d routes change something", changing)
	}
}
