package livepage

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"net/http"
	"strings"
)

var (
	//go:embed page.html
	frame string
	//go:embed page.css
	style string
	//go:embed model.js
	model string
	//go:embed page.js
	script string
)

// Path is where the page is. It is no path of the lease API.
const Path = "/"

// Page answers with the page.
type Page struct {
	body   []byte
	policy string
}

// New puts the page together.
func New() *Page {
	code := "\"use strict\";\n" + model + script
	body := strings.NewReplacer("/*STYLE*/", style, "/*SCRIPT*/", code).Replace(frame)
	return &Page{body: []byte(body), policy: policyFor(style, code)}
}

// policyFor lets the page run its own script and call its own server, and nothing else: whatever
// finds its way into a pool's names can neither run nor send a token elsewhere.
func policyFor(style, code string) string {
	return strings.Join([]string{
		"default-src 'none'", "script-src " + sourceOf(code), "style-src " + sourceOf(style), "connect-src 'self'",
		"img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

func sourceOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Matches reports whether a request is for the page.
func Matches(r *http.Request) bool {
	return r.URL.Path == Path && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// ServeHTTP answers with the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Cache-Control", "no-cache")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(p.body) // whoever asked may be gone
}
