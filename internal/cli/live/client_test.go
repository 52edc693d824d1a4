package live_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// sessions serves n sessions in pages, and counts the calls.
func sessions(t *testing.T, n int) (*live.Client, *int) {
	t.Helper()
	calls := new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls++
		q := r.URL.Query()
		limit, err := strconv.Atoi(q.Get("limit"))
		if err != nil || limit < 1 || limit > 1000 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		from := 0
		if after := q.Get("after"); after != "" {
			from, _ = strconv.Atoi(strings.TrimPrefix(after, "s"))
			from++
		}
		var entries []string
		next := ""
		for i := from; i < n && len(entries) < limit; i++ {
			entries = append(entries, fmt.Sprintf(`{"sessionID":"s%d","sender":%q}`, i, q.Get("sender")))
			if len(entries) == limit && i < n-1 {
				next = fmt.Sprintf(`,"next":"s%d"`, i)
			}
		}
		fmt.Fprintf(w, `{"sessions":[%s]%s}`, strings.Join(entries, ","), next)
	}))
	t.Cleanup(server.Close)
	return live.New(server.URL, http.DefaultTransport, "rl", "policy"), calls
}

func TestAListingReadsAsManyPagesAsItNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		there, limit, want, calls int
		more                      bool
	}{
		"none":                          {0, 0, 0, 1, false},
		"all of several pages":          {2500, 0, 2500, 3, false},
		"all, and the last page full":   {2000, 0, 2000, 2, false},
		"fewer than the limit":          {7, 500, 7, 1, false},
		"as many as the limit":          {500, 500, 500, 1, false},
		"more than the limit":           {501, 500, 500, 1, true},
		"a limit of more than one page": {5000, 1200, 1200, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, calls := sessions(t, c.there)
			found, more, err := client.Sessions(t.Context(), live.Filter{Limit: c.limit, Sender: "train"})
			if err != nil || len(found) != c.want || more != c.more || *calls != c.calls {
				t.Fatalf("%d sessions, more %v, %d calls, %v", len(found), more, *calls, err)
			}
			for i, s := range found {
				if s.SessionID != fmt.Sprintf("s%d", i) || s.Sender != "train" {
					t.Fatalf("entry %d is %+v", i, s)
				}
			}
		})
	}
}

func TestARefusalIsToldInTheRoutersWords(t *testing.T) {
	answer, status := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	client := live.New(server.URL+"//", http.DefaultTransport, "rl", "policy")
	if want := server.URL + "/v1alpha1/namespaces/rl/inferencepools/policy"; client.URL() != want {
		t.Errorf("%s, want %s", client.URL(), want)
	}
	for name, c := range map[string]struct {
		status int
		answer string
		want   string
		reason string
	}{
		"a problem document":       {404, `{"reason":"PoolNotFound","title":"t","detail":"no such pool"}`, "PoolNotFound: no such pool", "PoolNotFound"},
		"one that has no detail":   {403, `{"reason":"Forbidden","title":"The caller may not do this."}`, "Forbidden: The caller may not", "Forbidden"},
		"the answer of a stranger": {502, `<html>Bad Gateway</html>`, "no Berthmaster router: 502 Bad Gateway", ""},
		"a redirect":               {302, ``, "no Berthmaster router: 302", ""},
		"an answer of no form":     {200, `[]`, "the router's answer", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer = c.status, c.answer
			_, err := client.Pool(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if c.reason != "" && !live.Refused(err, c.reason) {
				t.Errorf("%v is not told as %s", err, c.reason)
			}
		})
	}
}
