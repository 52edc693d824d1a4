package sglang

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// within is a reach of these networks, without the API server at 10.0.0.1:443.
func within(networks ...string) Reach {
	r := Reach{Forbidden: func(at netip.AddrPort) bool { return at == netip.MustParseAddrPort("10.0.0.1:443") }}
	for _, n := range networks {
		r.Networks = append(r.Networks, netip.MustParsePrefix(n))
	}
	return r
}

func TestStaticEndpointsAreWithinTheirNetworksAndNeverSpecial(t *testing.T) {
	wide := within("0.0.0.0/0", "::/0")
	for name, c := range map[string]struct {
		reach Reach
		url   string
		may   bool
	}{
		"within a network":                     {within("10.0.0.0/8"), "http://10.0.0.7:30000", true},
		"outside of it":                        {within("10.0.0.0/8"), "http://11.0.0.7:30000", false},
		"in the second":                        {within("10.0.0.0/8", "fd00::/8"), "http://[fd00::7]:30000", true},
		"a name, which is looked at later":     {within("10.0.0.0/8"), "http://engine:30000", true},
		"a name where no network is allowed":   {within(), "http://engine:30000", false},
		"an address where none is":             {within(), "http://10.0.0.7:30000", false},
		"loopback":                             {wide, "http://127.0.0.1:30000", false},
		"loopback of another number":           {wide, "http://127.9.9.9:30000", false},
		"loopback in IPv6":                     {wide, "http://[::1]:30000", false},
		"loopback mapped into IPv6":            {wide, "http://[::ffff:127.0.0.1]:30000", false},
		"a cloud's metadata":                   {wide, "http://169.254.169.254", false},
		"a link-local address in IPv6":         {wide, "http://[fe80::1]:30000", false},
		"every address of this machine":        {wide, "http://0.0.0.0:30000", false},
		"one of 0.0.0.0/8":                     {wide, "http://0.1.2.3:30000", false},
		"broadcast":                            {wide, "http://255.255.255.255:30000", false},
		"multicast":                            {wide, "http://224.0.0.1:30000", false},
		"the API server":                       {wide, "https://10.0.0.1", false},
		"beside the API server":                {wide, "https://10.0.0.1:30000", true},
		"AWS's metadata in IPv6":               {wide, "http://[fd00:ec2::254]", false},
		"AWS's credentials for pods in IPv6":   {wide, "http://[fd00:ec2::23]", false},
		"a private network of IPv6":            {wide, "http://[fd00:ec3::254]:30000", true},
		"Google's metadata in IPv6":            {wide, "http://[fd20:ce::254]", false},
		"a neighbour of that":                  {wide, "http://[fd20:ce::253]:30000", true},
		"Alibaba's metadata":                   {wide, "http://100.100.100.200", false},
		"Azure's":                              {wide, "http://168.63.129.16:32526", false},
		"loopback by NAT64":                    {wide, "http://[64:ff9b::127.0.0.1]:30000", false},
		"a cloud's metadata by NAT64":          {wide, "http://[64:ff9b::a9fe:a9fe]", false},
		"the API server by NAT64":              {wide, "https://[64:ff9b::10.0.0.1]", false},
		"another port of it by NAT64":          {wide, "https://[64:ff9b::10.0.0.1]:30000", true},
		"an engine by NAT64":                   {wide, "http://[64:ff9b::10.0.0.7]:30000", true},
		"NAT64 outside of the networks":        {within("10.0.0.0/8"), "http://[64:ff9b::10.0.0.7]:30000", false},
		"NAT64 of local use":                   {wide, "http://[64:ff9b:1::10.0.0.7]:30000", false},
		"NAT64 of local use, of a long prefix": {wide, "http://[64:ff9b:1:a9fe:a9:fe00::]:30000", false},
		"what is like NAT64":                   {wide, "http://[64:ff9b:2::127.0.0.1]:30000", true},
		"loopback by a stateless translator":   {wide, "http://[::ffff:0:127.0.0.1]:30000", false},
		"loopback in IPv6 as it once was":      {wide, "http://[::127.0.0.1]:30000", false},
		"loopback by 6to4":                     {wide, "http://[2002:7f00:1::1]:30000", false},
		"an engine by 6to4":                    {wide, "http://[2002:a00:7::1]:30000", true},
		"metadata where special is like usual": {Reach{Special: SpecialAllowed, Networks: wide.Networks}, "http://[fd00:ec2::254]", true},
		"loopback where special is like usual": {Reach{Special: SpecialAllowed, Networks: wide.Networks}, "http://127.0.0.1:30000", true},
	} {
		base, err := ParseBaseURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.reach.Endpoint(base); (err == nil) != c.may || err != nil && !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want allowed: %t", name, err, c.may)
		}
	}
}

// What counts is the address that is connected to, however it was written.
func TestConnectionsAreLookedAtOnceTheirNameIsResolved(t *testing.T) {
	for name, c := range map[string]struct {
		reach    Reach
		resolved string
		named    bool
		may      bool
	}{
		"a pod's address, of any network":           {within(), "192.168.3.4:30000", false, true},
		"a pod that claims loopback":                {within(), "127.0.0.1:30000", false, false},
		"the API server":                            {within(), "10.0.0.1:443", false, false},
		"another port beside the API server":        {within(), "10.0.0.1:30000", false, true},
		"a name that is within the networks":        {within("10.0.0.0/8"), "10.2.3.4:30000", true, true},
		"a name that has turned to somewhere else":  {within("10.0.0.0/8"), "192.168.3.4:30000", true, false},
		"a name that has turned to loopback":        {within("0.0.0.0/0"), "127.0.0.1:30000", true, false},
		"a name that has turned to the API server":  {within("10.0.0.0/8"), "10.0.0.1:443", true, false},
		"the API server mapped into IPv6":           {within(), "[::ffff:10.0.0.1]:443", false, false},
		"a pod's address of a cloud's store":        {within(), "[fd00:ec2::254]:80", false, false},
		"the same by an interface":                  {within(), "[fd00:ec2::254%lo]:80", false, false},
		"a name that has turned to a cloud's store": {within("0.0.0.0/0"), "169.254.169.254:80", true, false},
	} {
		if err := c.reach.check(c.resolved, c.named); (err == nil) != c.may {
			t.Errorf("%s: %v, want allowed: %t", name, err, c.may)
		}
	}
}

func TestNothingIsSentWhereNoConnectionMayBeMade(t *testing.T) {
	asked := make(chan struct{}, 9)
	engine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	defer engine.Close()
	_, port, err := net.SplitHostPort(engine.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		base, err := ParseBaseURL("http://" + net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		transport := within("0.0.0.0/0", "::/0").NewTransport()
		if err := New(base, transport, nil).Health(t.Context()); !errors.Is(err, ErrUnreachable) || Refused(err) {
			t.Errorf("%s: %v", host, err)
		}
		transport.CloseIdleConnections()
	}
	if len(asked) != 0 {
		t.Error("the request was sent none the less")
	}
}

func TestRedirectsOfEnginesAreNotFollowed(t *testing.T) {
	elsewhere := make(chan struct{}, 9)
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere <- struct{}{} }))
	defer target.Close()
	engine := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	defer engine.Close()
	base, err := ParseBaseURL(engine.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	client := New(base, transport, nil)
	if err := client.Health(t.Context()); err == nil {
		t.Error("a redirect counts as health")
	}
	if len(elsewhere) != 0 {
		t.Error("the redirect was followed")
	}
}
