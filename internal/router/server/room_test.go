package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
)

// size is how much is taken.
func (m *room) size() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken
}

func TestARoomIsSharedAndHalfOfItIsForOnePoolAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(0, 100).Draw(t, "most")
		m, taken := newRoom(most), map[router.PoolKey][]int64{}
		of := func(list []int64) (sum int64) {
			for _, n := range list {
				sum += n
			}
			return sum
		}
		draw := func(t *rapid.T) router.PoolKey {
			return router.PoolKey{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pool")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				pool, n := draw(t), rapid.Int64Range(1, 60).Draw(t, "n")
				fits := m.taken+n <= most && of(taken[pool])+n <= most/2
				if err := m.take(pool, n); (err == nil) != fits {
					t.Fatalf("%d bytes for %v: %v, want room: %t", n, pool, err, fits)
				}
				if fits {
					taken[pool] = append(taken[pool], n)
				}
			},
			"back": func(t *rapid.T) {
				pool := draw(t)
				if list := taken[pool]; len(list) > 0 {
					m.back(pool, list[0])
					taken[pool] = list[1:]
				}
			},
			"": func(t *rapid.T) {
				sum := int64(0)
				for pool, list := range taken {
					sum += of(list)
					if m.by[pool] != of(list) {
						t.Fatalf("%v has %d bytes, want %d", pool, m.by[pool], of(list))
					}
				}
				if m.taken != sum || sum == 0 && len(m.by) > 0 {
					t.Fatalf("%d bytes are taken, want %d; %v is kept", m.taken, sum, m.by)
				}
			},
		})
	})
}

func TestABatchOfNothingMakesNoMoreThanAGoodOne(t *testing.T) {
	const most = 512
	zeros := []byte(`{"requests":[` + strings.Repeat("0,", 1<<19) + `0]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decodeBatch(&jsonReader{}, zeros, most)
	runtime.ReadMemStats(&after)
	// A list that has grown to 512 entries, and a refusal; one of all entries would take 12 MiB at least.
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes are made of %d entries", n, 1<<19)
	}
	if refused, ok := errors.AsType[*router.Refusal](err); !ok || refused.Field != "requests" {
		t.Errorf("answered %v", err)
	}
}

func TestABatchIsTakenApartAsTheStandardLibraryDoes(t *testing.T) {
	for _, list := range []string{
		`[]`, `[ ]`, `[0]`, `[ 0 , 1 ]`, `[{}]`, `[{"a":"}"},{"b":"]"}]`, `["\\\"],[",2]`, `[[[]],{"a":[{}]}]`, `[null,true]`, `["\u0022,"]`, "[\t{\n}\r,0]",
		`[`, `[0`, `[0,`, `[0,]`, `[,0]`, `[{]`, `[{]}]`, `["]`, `["\"]`, `[0 1]`, `[{}{}]`, `[}]`, `[0}`, `[nul]`, `[01]`, `[1.]`,
	} {
		raw := []byte(`{"requests":` + list + `}`)
		var want struct{ Requests []json.RawMessage }
		wrong := json.Unmarshal(raw, &want) != nil || len(want.Requests) == 0
		got, err := decodeBatch(&jsonReader{}, raw, 512)
		if (err != nil) != wrong {
			t.Errorf("%s: %v, want refused: %t", raw, err, wrong)
		}
		if diff := cmp.Diff(want.Requests, got); err == nil && diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

// long is a batch of one good request in so many bytes.
func long(bytes int) string {
	return `{"requests":[` + askR1 + `]` + strings.Repeat(" ", bytes-len(askR1)-len(`{"requests":[]}`)) + `}`
}

// reading has the server read a body of which the last byte does not come, until it has taken room for it.
func (w *world) reading(bytes int) io.Closer {
	w.t.Helper()
	body := long(bytes)
	before := w.server.large.size()
	c := w.raw(fmt.Sprintf("POST %s/leases:batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimPrefix(w.pool, w.base), len(body), body[:len(body)-1]))
	eventually(w.t, "room is taken", func() bool { return w.server.large.size() == before+int64(bytes) })
	return c
}

func TestLargeBytesBoundsWhatIsReadOfLongBodiesTogether(t *testing.T) {
	const body = 100 << 10
	w := limited(t, func(l *Limits) { l.LargeBytes = 3*body + 2*2*batchAnswerBytes })
	second := router.PoolKey{Namespace: "rl", Name: "second"}
	w.pools.Put(second, router.NewTable("uid-2", nil, w.clock()))
	other := strings.Replace(w.pool, "policy", "second", 1) + "/leases:batch"
	first := w.reading(body)
	r := w.do(http.MethodPost, w.pool+"/leases:batch", long(body))
	want(t, r, http.StatusTooManyRequests, "Contended")
	if r.header.Get("Retry-After") != "1" || w.outstanding() != 0 {
		t.Errorf("%d counted, %v", w.outstanding(), r.header)
	}
	if r := w.do(http.MethodPost, w.pool+"/leases", ask("r2", "s2")); r.status != http.StatusCreated {
		t.Errorf("a call that a desk is enough for: %d %s", r.status, r.raw)
	}
	if r := w.do(http.MethodPost, other, long(body)); r.status != http.StatusOK {
		t.Errorf("a batch of another pool: %d %s", r.status, r.raw)
	}
	first.Close()
	eventually(t, "room is given back", func() bool { return w.server.large.size() == 0 })
	if r := w.do(http.MethodPost, w.pool+"/leases:batch", long(body)); r.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", r.status, r.raw)
	}
}

func TestABatchIsRefusedBeforeItsAnswerWouldHaveNoRoom(t *testing.T) {
	w := limited(t, func(l *Limits) { l.LargeBytes = 4 * batchAnswerBytes })
	want(t, w.batch(ask("r1", "s1"), ask("r2", "s2"), ask("r3", "s3")), http.StatusTooManyRequests, "Contended")
	if n := w.outstanding(); n != 0 {
		t.Errorf("%d leases granted that nobody was told of", n)
	}
	if r := w.batch(ask("r1", "s1"), ask("r2", "s2")); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

func TestLargeBytesBoundsLongAnswers(t *testing.T) {
	const backends = 100
	for most, status := range map[int64]int{deskBytes: http.StatusTooManyRequests, 1 << 20: http.StatusOK} {
		w := newWorld(t, backends, func(c *Config, _ *router.Fleet) { c.Limits.LargeBytes = most })
		if r := w.do(http.MethodGet, w.pool, nil); r.status != status || status == http.StatusOK && len(r.raw) <= deskBytes {
			t.Errorf("with room for %d bytes: %d and %d bytes, want %d", most, r.status, len(r.raw), status)
		}
	}
}

func TestAWatcherWhoseStateHasNoRoomIsGivenUp(t *testing.T) {
	const backends = 100
	for most, told := range map[int64]bool{deskBytes: false, 1 << 20: true} {
		w := newWorld(t, backends, func(c *Config, _ *router.Fleet) { c.Limits.LargeBytes = most })
		s := w.watch("")
		if _, got := s.read(); got != told {
			t.Errorf("with room for %d bytes a state comes: %t, want %t", most, got, told)
		}
		s.close()
	}
}

// pieces is a body that comes piece by piece, and tells the end with the last piece or after it.
type pieces struct {
	left  [][]byte
	apart bool
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	if p.left[0] = p.left[0][n:]; len(p.left[0]) > 0 {
		return n, nil
	}
	if p.left = p.left[1:]; len(p.left) == 0 && !p.apart {
		return n, io.EOF
	}
	return n, nil
}

func TestABodyIsReadWholeHoweverItComes(t *testing.T) {
	w := newWorld(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, deskBytes - 1, deskBytes, deskBytes + 1, 3 * deskBytes, 64 << 10, 64<<10 + 1}).Draw(t, "size")
		whole := bytes.Repeat([]byte("x"), size)
		if size > 0 {
			whole[size-1] = '!'
		}
		body := &pieces{apart: rapid.Bool().Draw(t, "the end comes by itself")}
		for left := whole; len(left) > 0; {
			n := rapid.IntRange(1, min(len(left), 2*deskBytes)).Draw(t, "piece")
			body.left, left = append(body.left, left[:n:n]), left[n:]
		}
		r, err := http.NewRequest(http.MethodPost, "http://x", body)
		if err != nil {
			t.Fatal(err)
		}
		if r.ContentLength = -1; rapid.Bool().Draw(t, "its length is known") {
			r.ContentLength = int64(size)
		}
		d := w.server.desks.take()
		defer w.server.desks.back(d)
		got, err := w.server.readBody(nil, r, &call{pool: w.key}, 64<<10, d)
		if refused := size > 64<<10; (err != nil) != refused || err == nil && !bytes.Equal(got, whole) {
			t.Fatalf("%d bytes: %v, and %d bytes", size, err, len(got))
		}
		if held := d.held; err == nil && (held > 0) != (size > deskBytes || size == deskBytes && body.apart && r.ContentLength < 0) {
			t.Fatalf("%d bytes: %d are held", size, held)
		}
	})
}
