package sglang

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// BaseURL is the canonical address of an engine: scheme, host and perhaps a port, with no
// trailing slash. The zero value is no address. Two BaseURLs are comparable with ==.
type BaseURL struct {
	canonical string
	hostPort  string
}

// URLError says which part of an engine's URL is not acceptable, and why. It never repeats
// user info, which may hold a password.
type URLError struct {
	// Field is the part at fault: url, scheme, user, host, port, path, query or fragment.
	Field string
	// Reason says what is wrong with it.
	Reason string
}

func (e *URLError) Error() string { return "engine URL: " + e.Field + ": " + e.Reason }

// hostName is what a registered name may look like once it is in lower case. Underscores are
// not host names by the letter, but container networks hand them out.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$`)

// ParseBaseURL reads the address of an engine. "http://b", "http://b/" and "http://b//" are the
// same engine. A path other than slashes, a query, a fragment, user info, a scheme other than
// http and https, and a missing or malformed host or port are refused with a *URLError.
func ParseBaseURL(raw string) (BaseURL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return BaseURL{}, &URLError{Field: "url", Reason: "is not a URL"}
	}
	if err := refuseExtras(raw, u); err != nil {
		return BaseURL{}, err
	}
	host, err := canonicalHost(u.Hostname())
	if err != nil {
		return BaseURL{}, err
	}
	port, err := canonicalPort(u)
	if err != nil {
		return BaseURL{}, err
	}
	base := BaseURL{hostPort: net.JoinHostPort(host, port)}
	base.canonical = u.Scheme + "://" + base.hostPort
	if u.Port() == "" {
		base.canonical = u.Scheme + "://" + strings.TrimSuffix(base.hostPort, ":"+port)
	}
	return base, nil
}

// refuseExtras refuses everything that a base URL must not carry.
func refuseExtras(raw string, u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &URLError{Field: "scheme", Reason: fmt.Sprintf("must be http or https, not %q", u.Scheme)}
	case u.User != nil:
		return &URLError{Field: "user", Reason: "must not be given; keys come from a Secret"}
	case u.Opaque != "" || u.Host == "":
		return &URLError{Field: "host", Reason: "is missing"}
	case strings.Trim(u.EscapedPath(), "/") != "":
		return &URLError{Field: "path", Reason: fmt.Sprintf("must be empty or slashes, not %q", u.EscapedPath())}
	case u.RawQuery != "" || u.ForceQuery:
		return &URLError{Field: "query", Reason: "must not be given"}
	case strings.Contains(raw, "#"):
		return &URLError{Field: "fragment", Reason: "must not be given"}
	}
	return nil
}

// canonicalHost returns the one spelling of a host by which engines are compared.
func canonicalHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", &URLError{Field: "host", Reason: "must not have an IPv6 zone"}
		}
		return addr.Unmap().String(), nil
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if !hostName.MatchString(name) {
		return "", &URLError{Field: "host", Reason: fmt.Sprintf("%q is neither a host name nor an IP address", host)}
	}
	return name, nil
}

// canonicalPort returns the port in decimal, the scheme's own if none is written.
func canonicalPort(u *url.URL) (string, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", &URLError{Field: "port", Reason: "is empty"}
		}
		if u.Scheme == "https" {
			return "443", nil
		}
		return "80", nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", &URLError{Field: "port", Reason: fmt.Sprintf("must be 1 to 65535, not %q", text)}
	}
	return strconv.FormatUint(port, 10), nil
}

// String is the URL without a trailing slash, as clients are given it.
func (b BaseURL) String() string { return b.canonical }

// HostPort is the canonical host:port, by which two claims on one engine are recognised. The
// port is always there.
func (b BaseURL) HostPort() string { return b.hostPort }

// IsZero reports whether b is no address.
func (b BaseURL) IsZero() bool { return b == BaseURL{} }

// join returns the URL of a route, which starts with a slash.
func (b BaseURL) join(route string) string { return b.canonical + route }
