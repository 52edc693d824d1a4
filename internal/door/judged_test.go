package door

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"
)

// judging serves a port whose handler lets in whoever shows anything.
func judging(t *testing.T, most int, secure *tls.Config) *place {
	t.Helper()
	return openTo(t, most, secure, func(d *Door, s *http.Server) { s.ConnState, s.ConnContext = d.WatchJudged, d.Context })
}

// sendAs is send by somebody who is known.
func (v *visitor) sendAs(name, path string) {
	v.t.Helper()
	if _, err := io.WriteString(v, "GET "+path+" HTTP/1.1\r\nHost: a\r\nAuthorization: "+name+"\r\n\r\n"); err != nil {
		v.t.Fatal(err)
	}
}

func TestACallOfAStrangerKeepsNoPlace(t *testing.T) {
	p := judging(t, 3, nil)
	for range 3 {
		p.from("127.0.0.3").send("/held") // the server is made to wait for something
		<-p.entered
	}
	if c := p.door.Counts(); c.Resting != 3 {
		t.Errorf("%+v", c)
	}
	honest := p.from("127.0.0.2")
	if honest.sendAs("ann", "/"); !honest.answered() {
		t.Error("a newcomer is not served while strangers have every place")
	}
	p.until("a stranger has gone for it", func(c Counts) bool { return c.Displaced == 1 && c.Refused == 0 && c.Resting == 3 })
}

func TestACallIsNotCutOnceItsCallerIsLetIn(t *testing.T) {
	for name, secure := range map[string]*tls.Config{"without TLS": nil, "by TLS": certified(t)} {
		t.Run(name, func(t *testing.T) {
			p := judging(t, 1, secure)
			ann := p.from("127.0.0.2")
			if secure != nil {
				c, ended := ann.greet()
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				ann = c
			}
			ann.sendAs("ann", "/held")
			<-p.entered
			if _, err := p.from("127.0.0.3").reads.ReadByte(); err == nil {
				t.Error("a second connection is let in while the first is at work")
			}
			p.until("the newcomer is refused", func(c Counts) bool { return c == Counts{Open: 1, Refused: 1} })
		})
	}
}

func TestWhoWasLetInRestsBetweenItsCalls(t *testing.T) {
	p := judging(t, 1, nil)
	ann := p.from("127.0.0.2")
	if ann.sendAs("ann", "/"); !ann.answered() {
		t.Fatal("not answered")
	}
	p.until("it rests", func(c Counts) bool { return c.Resting == 1 })
	other := p.from("127.0.0.3")
	if other.send("/"); !other.answered() {
		t.Error("nobody gives way to a newcomer")
	}
	if c := p.door.Counts(); c.Displaced != 1 || c.Refused != 0 {
		t.Errorf("%+v", c)
	}
}

func TestAStrangerIsNoStrangerToTurnsOnceItsFirstCallIsRead(t *testing.T) {
	p := judging(t, 1000, certified(t))
	v, ended := p.from("127.0.0.2").greet()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	v.send("/held")
	<-p.entered
	if n := len(p.door.turns); n != 0 {
		t.Errorf("%d turns are kept by a call that is being answered", n)
	}
}

func TestWhoComesThroughNoDoorIsLetInByNobody(t *testing.T) {
	LetIn(t.Context())
	if ctx := new(Door).Context(t.Context(), deaf{}); ctx != t.Context() {
		t.Error("a connection of no door is in the context")
	}
}
