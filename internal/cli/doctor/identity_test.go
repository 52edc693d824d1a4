package doctor_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berthmaster/berthmaster/internal/cli/doctor"
)

// tokenUntil is a token in the form of a service account's.
func tokenUntil(at time.Time) string {
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, at.Unix()))
	return "e30." + claims + ".c2ln"
}

func TestTheUsersTokenAndClockAreHeldAgainstTheAPIServers(t *testing.T) {
	var authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		w.Header().Set("Date", noon.Format(http.TimeFormat))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	expires := noon.Add(-time.Minute)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(tokenUntil(expires)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{
		"a token":          {Host: server.URL, BearerToken: tokenUntil(expires)},
		"a file of tokens": {Host: server.URL, BearerTokenFile: file, BearerToken: "an older one"},
	} {
		t.Run(name, func(t *testing.T) {
			you, err := doctor.Identify(t.Context(), config, func() time.Time { return noon.Add(-2 * time.Minute) })
			if err != nil || !you.TokenExpires.Equal(expires) || !you.ServerTime.Equal(noon) {
				t.Errorf("%+v, %v", you, err)
			}
			if authorization != "" {
				t.Error("the token was sent along to ask for the time")
			}
			found := doctor.JudgeIdentity(you)
			if len(found) != 2 || found[0].Fault != doctor.TokenExpired || found[1].Fault != doctor.ClockSkewed {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestATokenThatSaysNothingOfItsEndIsNotJudged(t *testing.T) {
	for _, token := range []string{"", "opaque", "a.b.c", "a.!.c", "e30.e30.x"} {
		you, _ := doctor.Identify(t.Context(), &rest.Config{Host: "http://127.0.0.1:1", BearerToken: token}, func() time.Time { return noon })
		if found := doctor.JudgeIdentity(you); len(found) != 0 {
			t.Errorf("%q: %+v", token, found)
		}
	}
}
