package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEqualSeedsSayTheSameAndOthersDoNot(t *testing.T) {
	say := func(prompt string, sampling int64, sample int) []int {
		return Tokens(Seed([]byte(prompt), sampling, sample), 0, 20)
	}
	base := say("hello", 1, 0)
	if diff := cmp.Diff(base, say("hello", 1, 0)); diff != "" {
		t.Error(diff)
	}
	for name, other := range map[string][]int{
		"another prompt": say("hullo", 1, 0), "another sampling seed": say("hello", 2, 0), "another sample": say("hello", 1, 1),
	} {
		if cmp.Equal(base, other) {
			t.Errorf("%s says the same", name)
		}
	}
}

func TestTextInPartsIsTheTextInOne(t *testing.T) {
	var whole, parts strings.Builder
	Write(&whole, 7, 0, 50)
	Write(&parts, 7, 0, 13)
	Write(&parts, 7, 13, 50)
	if whole.String() != parts.String() {
		t.Errorf("%q and %q", whole.String(), parts.String())
	}
}

func TestWordsAreDistinct(t *testing.T) {
	seen := map[string]int{}
	for id := FirstID; id < Vocabulary; id++ {
		w := Word(id)
		if other, ok := seen[w]; ok {
			t.Fatalf("%q is %d and %d", w, other, id)
		}
		seen[w] = id
	}
}

func TestValuesStayInTheirRanges(t *testing.T) {
	sum := 0
	for i := range 10000 {
		if p := Logprob(uint64(i), i); p > 0 || p < -2 {
			t.Fatalf("logprob %v", p)
		}
		if id := Token(uint64(i), i); id < FirstID || id >= Vocabulary {
			t.Fatalf("token %d", id)
		}
		n := NaturalLength(uint64(i), 100)
		if n < 1 || n >= 200 {
			t.Fatalf("length %d", n)
		}
		sum += n
	}
	if mean := sum / 10000; mean < 95 || mean > 105 {
		t.Errorf("mean natural length %d, want about 100", mean)
	}
	if Count("") != 1 || Count("12345") != 2 {
		t.Errorf("counts %d and %d", Count(""), Count("12345"))
	}
}
