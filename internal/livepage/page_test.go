package livepage

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func answer(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	New().ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
	return w
}

func TestThePageIsOneDocumentWithoutOutsideAssets(t *testing.T) {
	body := answer(t).Body.String()
	for _, outside := range []string{"http://", "https://", "@import", "url(", "import(", "src="} {
		if strings.Contains(body, outside) {
			t.Errorf("the page contains %s", outside)
		}
	}
	if strings.Contains(body, "/*STYLE*/") || strings.Contains(body, "/*SCRIPT*/") {
		t.Error("a part of the page is missing")
	}
}

func TestThePolicyNamesExactlyTheScriptAndTheStyleOfThePage(t *testing.T) {
	w := answer(t)
	policy := w.Header().Get("Content-Security-Policy")
	for tag, directive := range map[string]string{"style": "style-src ", "script": "script-src "} {
		parts := regexp.MustCompile(`(?s)<` + tag + `>(.*)</` + tag + `>`).FindStringSubmatch(w.Body.String())
		if len(parts) != 2 || !strings.Contains(policy, directive+sourceOf(parts[1])+";") {
			t.Errorf("%s of the page is not the one in %q", tag, policy)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
}

func TestTheScriptNeverMakesMarkupOfText(t *testing.T) {
	for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"} {
		if strings.Contains(model+script, way) {
			t.Errorf("the script uses %s: names of pools and sessions must stay text", way)
		}
	}
}

func TestOnlyThePagesOwnPathIsThePages(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodGet, "/", true}, {http.MethodHead, "/", true}, {http.MethodPost, "/", false},
		{http.MethodGet, "/v1alpha1/inferencepools", false}, {http.MethodGet, "/index.html", false},
	} {
		if got := Matches(httptest.NewRequest(c.method, c.path, nil)); got != c.want {
			t.Errorf("%s %s is the page's: %t", c.method, c.path, got)
		}
	}
}
