package access

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoMoreIsRememberedThanItMayWeigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bytes, answers = 1000, 50
		kept := memory[string]{answers: answers, bytes: bytes, weigh: func(v string) int { return len(v) }}
		m := newMemo[string](kept, newTurns(1), newRoom(1), time.Now, func(_ context.Context, q string) (string, span, error) {
			return strings.Repeat("v", len(q)), span{time.Now().Add(time.Minute), time.Now().Add(time.Hour)}, nil
		})
		ask := func(q string) {
			if v, err := m.get(t.Context(), somewhere, q, q); err != nil || len(v) != len(q) {
				t.Fatalf("got %q, %v", v, err)
			}
			total := 0
			for _, e := range m.known {
				total += len(e.value)
			}
			if total > bytes || total != m.weight || len(m.known) > answers {
				t.Fatalf("%d answers weigh %d, and are taken for %d; want at most %d", len(m.known), total, m.weight, bytes)
			}
		}
		for i := range 500 {
			ask(fmt.Sprintf("%0*d", 1+i%90, i))
			if i%100 == 99 {
				pass(2 * time.Minute) // what is known is asked again, and weighed again
			}
		}
		if len(m.known) < 10 {
			t.Errorf("%d answers are remembered: too few to be of use", len(m.known))
		}
		ask(strings.Repeat("x", bytes+1))
	})
}

func TestAnIdentityWeighsWhatItsNamesHold(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	v := verdict{who: Identity{User: long(1000), UID: long(2000), Groups: []string{long(4000), long(8000)}, Extra: map[string][]string{long(16000): {long(32000)}}}}
	if w := v.weight(); w < 63000 || w > 64000 {
		t.Errorf("it weighs %d, want 63,000 and a little", w)
	}
	if w := (verdict{}).weight(); w != 0 {
		t.Errorf("nobody weighs %d", w)
	}
}
