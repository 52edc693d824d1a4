package access

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestOneComplaintAMinuteIsToldAndHowManyWereNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		began := time.Now()
		g := New(Config{Reviewer: &authority{down: errors.New("down")}, Pools: router.NewPools(), Failed: func(err error, untold int) {
			told = append(told, fmt.Sprint(time.Since(began), " ", err, " ", untold))
		}})
		for i := range 1300 { // ten a second, each with a token of its own
			if g.Authenticate(call(t, http.MethodGet, fmt.Sprint("Bearer made-up-", i))) == nil {
				t.Fatal("let in")
			}
			pass(100 * time.Millisecond)
		}
		if diff := cmp.Diff([]string{"0s down 0", "1m0s down 599", "2m0s down 599"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}
