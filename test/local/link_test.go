package local

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// echo is a server that sends each line back.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				lines := bufio.NewReader(c)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					_, _ = c.Write([]byte(line))
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// caller is the other end of a link, and the lines that come back.
func caller(t *testing.T, l *Link) (net.Conn, <-chan string) {
	t.Helper()
	c, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	heard := make(chan string, 16)
	go func() {
		defer close(heard)
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			heard <- lines.Text()
		}
	}()
	return c, heard
}

func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, heard <-chan string, want string) {
	t.Helper()
	select {
	case got := <-heard:
		if got != want {
			t.Fatalf("heard %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("did not hear %q", want)
	}
}

func openLink(t *testing.T) *Link {
	t.Helper()
	l, err := newLink(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

func TestACutLinkCarriesNothingUntilItIsHealedAndLosesNothing(t *testing.T) {
	l := openLink(t)
	c, heard := caller(t, l)
	say(t, c, "before")
	hear(t, heard, "before")
	l.Cut()
	l.Cut()
	say(t, c, "meanwhile")
	late, lateHeard := caller(t, l)
	say(t, late, "on a new connection")
	select {
	case got := <-heard:
		t.Fatalf("a cut link carried %q", got)
	case got := <-lateHeard:
		t.Fatalf("a cut link carried %q", got)
	case <-time.After(100 * time.Millisecond): // what is wrong would be seen at once; waiting cannot make it right
	}
	l.Heal()
	l.Heal()
	hear(t, heard, "meanwhile")
	hear(t, lateHeard, "on a new connection")
}

func TestASlowLinkBringsAnswersLateAndInOrder(t *testing.T) {
	l := openLink(t)
	c, heard := caller(t, l)
	const delay = 150 * time.Millisecond
	l.Slow(delay)
	begun := time.Now()
	for _, line := range []string{"one", "two", "three"} {
		say(t, c, line)
	}
	for _, line := range []string{"one", "two", "three"} {
		hear(t, heard, line)
	}
	if took := time.Since(begun); took < delay {
		t.Errorf("answers after %s, want %s or more", took, delay)
	}
}
