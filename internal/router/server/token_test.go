package server

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, minKeyBytes) }

func tokensOf(t testing.TB, k Keys) *tokens {
	t.Helper()
	v, err := newTokens(k)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func aClaim() router.Claim {
	return router.Claim{
		Pool: "6f0c", Request: "r-1", RID: "00112233445566778899aabbccddeeff", Backend: "sglang-0",
		Incarnation: "9d1e/containerd://77", Session: "s-1", Sender: "train", Generation: 3, Group: "g",
		Executions: 8, Epoch: 1, Term: 2, Version: "step-42 \x00é",
	}
}

func drawClaim(t *rapid.T) router.Claim {
	text := func(label string) string { return rapid.StringN(0, 40, 200).Draw(t, label) }
	number := func(label string) int64 { return rapid.Int64Min(0).Draw(t, label) }
	return router.Claim{
		Pool: router.PoolUID(text("pool")), Request: router.RequestID(text("request")), RID: router.RID(text("rid")),
		Backend: router.BackendName(text("backend")), Incarnation: router.Incarnation(text("incarnation")),
		Session: router.SessionID(text("session")), Sender: router.SenderName(text("sender")), Generation: number("generation"),
		Group: router.GroupID(text("group")), Executions: number("executions"), Epoch: router.Epoch(number("epoch")),
		Term: router.Term(number("term")), Version: router.Version(text("version")),
	}
}

func TestTokenCarriesTheWholeClaim(t *testing.T) {
	made := tokensOf(t, Keys{Current: key(1)})
	rapid.Check(t, func(rt *rapid.T) {
		want := drawClaim(rt)
		got, err := made.verify(made.append(nil, &want))
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestTokenOfAnyChangedByteIsRefused(t *testing.T) {
	made := tokensOf(t, Keys{Current: key(1)})
	c := aClaim()
	raw, err := base64.RawURLEncoding.DecodeString(string(made.append(nil, &c)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		forged := append([]byte(nil), raw...)
		forged[i] ^= 0x01
		if got, err := made.verify([]byte(base64.RawURLEncoding.EncodeToString(forged))); err == nil {
			t.Fatalf("byte %d changed, accepted as %+v", i, got)
		}
	}
}

func TestTokenIsRefusedWhen(t *testing.T) {
	made := tokensOf(t, Keys{Current: key(1)})
	c := aClaim()
	good := string(made.append(nil, &c))
	other := tokensOf(t, Keys{Current: key(2)})
	for name, token := range map[string]string{
		"it is empty":                         "",
		"it is not base64url":                 "???",
		"it is padded":                        good + "=",
		"something follows it":                good + "AAAA",
		"it has a line end":                   good[:8] + "\n" + good[8:],
		"it is cut":                           good[:len(good)-1],
		"it is made under a key unknown here": string(other.append(nil, &c)),
		"it is longer than any token":         strings.Repeat("A", maxTokenChars+1),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := made.verify([]byte(token)); err == nil {
				t.Fatalf("accepted as %+v", got)
			}
		})
	}
}

func TestRotationAcceptsThePreviousKeyAndMakesTokensUnderTheCurrent(t *testing.T) {
	c := aClaim()
	before := tokensOf(t, Keys{Current: key(1)})
	during := tokensOf(t, Keys{Current: key(2), Previous: key(1)})
	after := tokensOf(t, Keys{Current: key(2)})
	old := before.append(nil, &c)
	if _, err := during.verify(old); err != nil {
		t.Errorf("during the overlap an old token is refused: %v", err)
	}
	if _, err := after.verify(old); err == nil {
		t.Error("after the overlap an old token is accepted")
	}
	if _, err := after.verify(during.append(nil, &c)); err != nil {
		t.Errorf("a token made during the overlap is refused after it: %v", err)
	}
}

func TestKeysTooShortAreRefusedByName(t *testing.T) {
	for field, k := range map[string]Keys{
		"Keys.Current":  {Current: key(1)[1:]},
		"Keys.Previous": {Current: key(1), Previous: []byte("short")},
	} {
		if _, err := newTokens(k); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestLongestClaimFitsIntoAToken(t *testing.T) {
	made := tokensOf(t, Keys{Current: key(1)})
	id := strings.Repeat("x", 128)
	c := router.Claim{
		Pool: router.PoolUID(id[:36]), Request: router.RequestID(id), RID: router.RID(id[:32]),
		Backend: router.BackendName(strings.Repeat("b", 253)), Incarnation: router.Incarnation(strings.Repeat("i", 512)),
		Session: router.SessionID(id), Sender: router.SenderName(id), Generation: 1<<63 - 1, Group: router.GroupID(id),
		Executions: router.MaxExecutions, Epoch: 1<<63 - 1, Term: 1<<63 - 1, Version: router.Version(strings.Repeat("v", 1024)),
	}
	if token := made.append(nil, &c); len(token) > maxTokenChars {
		t.Fatalf("%d characters", len(token))
	}
}

// FuzzToken: whatever is accepted encodes to itself, so no two tokens say the same.
func FuzzToken(f *testing.F) {
	made := tokensOf(f, Keys{Current: key(1), Previous: key(2)})
	c := aClaim()
	f.Add(string(made.append(nil, &c)))
	f.Add(string(made.append(nil, &router.Claim{})))
	f.Add("AQAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		got, err := made.verify([]byte(token))
		if err != nil {
			return
		}
		if again := string(made.append(nil, &got)); again != token {
			t.Fatalf("%q is accepted, its claim encodes to %q", token, again)
		}
	})
}

// FuzzClaim does the same below the MAC, which a fuzzer cannot forge.
func FuzzClaim(f *testing.F) {
	c := aClaim()
	f.Add(appendClaim(nil, &c))
	f.Add(appendClaim(nil, &router.Claim{}))
	f.Add(bytes.Repeat([]byte{0x80}, 20))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := readClaim(raw)
		if err != nil {
			return
		}
		if again := appendClaim(nil, &got); !bytes.Equal(again, raw) {
			t.Fatalf("%x is accepted, its claim encodes to %x", raw, again)
		}
	})
}
