package local

import (
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestLiveNamesEverythingThatIsStillCounted(t *testing.T) {
	for name, c := range map[string]struct{ view, want string }{
		"nothing":                {`{"backends":[{"name":"a","capacity":64}],"senders":[{"name":"train"}]}`, ""},
		"a session":              {`{"sessions":2}`, "sessions 2"},
		"a waiting client":       {`{"waiting":1}`, "waiting 1"},
		"an execution":           {`{"backends":[{"name":"a","outstanding":3}]}`, "a outstanding 3"},
		"one nobody answers for": {`{"backends":[{"name":"a","held":1}]}`, "a held 1"},
		"a resident session":     {`{"backends":[{"name":"a","sessions":1}]}`, "a sessions 1"},
		"unknown load":           {`{"backends":[{"name":"a","unknownLoad":true}]}`, "a unknown load"},
		"an execution of train":  {`{"senders":[{"name":"train","counted":4}]}`, "sender train 4"},
	} {
		t.Run(name, func(t *testing.T) {
			var live Live
			if err := json.Unmarshal([]byte(c.view), &live); err != nil {
				t.Fatal(err)
			}
			err := live.Counted()
			if c.want == "" && err != nil {
				t.Errorf("counted %v, want nothing", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("counted %v, want %s", err, c.want)
			}
		})
	}
}

func TestAddressesRefuseOneThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.92:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if got, err := addresses(t.Context(), netip.MustParseAddr("127.0.0.91"), 2, port); err == nil {
		t.Errorf("addresses gave %v although somebody listens at the second", got)
	}
	got, err := addresses(t.Context(), netip.MustParseAddr("127.0.0.93"), 2, port)
	if err != nil || strings.Join(got, " ") != "127.0.0.93 127.0.0.94" {
		t.Errorf("addresses gave %v, %v", got, err)
	}
}

func TestAddressesStayOnTheLoopbackInterface(t *testing.T) {
	if got, err := addresses(t.Context(), netip.MustParseAddr("127.255.255.255"), 2, 0); err == nil {
		t.Errorf("addresses gave %v, of which the second is not on the loopback interface", got)
	}
}

func TestEngineNamesAreNoBeginningsOfEachOther(t *testing.T) {
	names := engineNames(12)
	for i, a := range names {
		for j, b := range names {
			if i != j && strings.HasPrefix(a, b) {
				t.Errorf("%s begins with %s", a, b)
			}
		}
	}
}
