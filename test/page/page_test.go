package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/test/page/browser"
)

// pictures is where what was seen is kept.
const pictures = "../../.cache/page"

var (
	desk  = browser.Shape{Width: 1280, Height: 900, Scale: 1}
	phone = browser.Shape{Width: 390, Height: 844, Scale: 2, Phone: true}
)

// visitor is a person with a browser. A step that fails ends the test with a picture of how it looked.
type visitor struct {
	*testing.T
	*browser.Browser
	ctx context.Context
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	if err := os.MkdirAll(pictures, 0o750); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	b, err := browser.Start(ctx, t.TempDir())
	if errors.Is(err, browser.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	v := &visitor{t, b, ctx}
	v.must(b.Screen(ctx, desk))
	return v
}

func (v *visitor) must(err error) {
	v.Helper()
	if err != nil {
		_ = v.Picture(v.ctx, filepath.Join(pictures, "failed.png"))
		v.Fatal(err)
	}
}

// sees waits until the expression is true.
func (v *visitor) sees(expression string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, time.Minute)
	defer cancel()
	v.must(v.Until(ctx, expression))
}

// reads waits until an element says something.
func (v *visitor) reads(selector, text string) {
	v.Helper()
	v.sees(fmt.Sprintf("document.querySelector(%s)?.textContent.includes(%s)", strconv.Quote(selector), strconv.Quote(text)))
}

func (v *visitor) keeps(name string) {
	v.Helper()
	v.must(v.Eval(v.ctx, `scrollTo(0, 0)`, nil))
	v.must(v.Eval(v.ctx, `Promise.allSettled(document.getAnimations().map((a) => a.finished)).then(() => true)`, nil))
	v.must(v.Picture(v.ctx, filepath.Join(pictures, name+".png")))
}

// open opens the page and says who is looking.
func (v *visitor) open(url string) {
	v.Helper()
	v.must(v.Call(v.ctx, "Page.navigate", map[string]any{"url": url + "/"}, nil))
	v.sees(`document.querySelector("#login")?.open`)
	v.logIn(password)
	v.sees(`document.querySelectorAll("#strip .cell").length > 0`)
}

func (v *visitor) logIn(token string) {
	v.Helper()
	v.must(v.Eval(v.ctx, `document.querySelector("#token").focus()`, nil))
	v.must(v.Type(v.ctx, token))
	v.must(v.Press(v.ctx, "Enter"))
}

func TestThePageShowsNothingToWhomTheRouterDoesNotKnow(t *testing.T) {
	s, v := newStage(t), newVisitor(t)
	v.must(v.Call(v.ctx, "Page.navigate", map[string]any{"url": s.url + "/"}, nil))
	v.sees(`document.querySelector("#login")?.open`)
	v.keeps("0-who-is-looking")
	v.logIn("wrong")
	v.reads("#login-why", "not known")
	v.sees(`document.querySelector("#body").hidden && document.querySelectorAll(".cell").length === 0`)
	v.logIn(password)
	v.reads("#name", "policy-32b")
}

// fits demands that nothing has to be scrolled sideways.
func (v *visitor) fits() {
	v.Helper()
	var over []string
	v.must(v.Eval(v.ctx, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".sr, .skip, svg")).map((e) => e.tagName + "." + e.className)`, &over))
	if len(over) > 0 {
		v.keeps("failed")
		v.Errorf("beyond the edge of the screen: %v", over)
	}
}

// complainsOfNothing demands that the page threw nothing and broke no rule of its policy.
func (v *visitor) complainsOfNothing() {
	v.Helper()
	for _, p := range v.Problems() {
		if !strings.Contains(p, strconv.Itoa(http.StatusUnauthorized)) && !strings.Contains(p, strconv.Itoa(http.StatusNotFound)) {
			v.Error(p)
		}
	}
}

func TestAThousandBackendsAreLegible(t *testing.T) {
	s, v := newStage(t), newVisitor(t)
	v.open(s.url)
	v.must(v.Eval(v.ctx, `location.hash = "#/rl/thousand"`, nil))
	v.sees(`document.querySelectorAll("#strip .cell").length === 1000`)
	v.reads("#rollout", "334 of 1000 backends are on it")
	v.reads("#attention", "more")
	v.sees(`now.history.length > 4`)
	v.keeps("6-thousand")
	var least float64
	v.must(v.Eval(v.ctx, `Math.min(...[...document.querySelectorAll(".cell")].map((c) => Math.min(c.offsetWidth, c.offsetHeight)))`, &least))
	if least < 10 {
		v.Errorf("a cell is %v pixels small", least)
	}
	v.must(v.Screen(v.ctx, phone))
	v.fits()
	v.keeps("7-thousand-phone")
	v.complainsOfNothing()
}

func TestThePageIsUsedByKeyboardAndReadAloud(t *testing.T) {
	s, v := newStage(t), newVisitor(t)
	v.open(s.url)
	var reached []string
	for range 12 {
		v.must(v.Press(v.ctx, "Tab"))
		var id string
		v.must(v.Eval(v.ctx, `document.activeElement.id || document.activeElement.textContent`, &id))
		reached = append(reached, id)
	}
	for _, control := range []string{"pool", "theme", "order", "strip", "session"} {
		if !strings.Contains(strings.Join(reached, " ")+" ", control+" ") {
			t.Errorf("Tab does not reach %s: %v", control, reached)
		}
	}
	v.must(v.Eval(v.ctx, `document.querySelector("#strip").focus()`, nil))
	for _, step := range []struct{ key, backend string }{{"ArrowRight", "sglang-0"}, {"ArrowRight", "sglang-1"}, {"End", "sglang-11"}, {"ArrowLeft", "sglang-10"}, {"Home", "sglang-0"}} {
		v.must(v.Press(v.ctx, step.key))
		v.sees(fmt.Sprintf("document.querySelector('#detail').textContent.startsWith(%s)", strconv.Quote(step.backend+": ")))
		var aloud string
		v.must(v.Eval(v.ctx, `document.getElementById(document.querySelector("#strip").getAttribute("aria-activedescendant")).getAttribute("aria-label")`, &aloud))
		if !strings.HasPrefix(aloud, step.backend+": 0 of 10 executions") {
			t.Errorf("after %s a screen reader says %q", step.key, aloud)
		}
	}
	nameless, err := v.Nameless(v.ctx)
	v.must(err)
	if len(nameless) > 0 {
		t.Errorf("controls without a name: %v", nameless)
	}
}

func TestTextIsReadableAgainstItsGround(t *testing.T) {
	s, v := newStage(t), newVisitor(t)
	v.open(s.url)
	for range 2 {
		v.must(v.Click(v.ctx, "#theme"))
		var poor []string
		v.must(v.Eval(v.ctx, contrast, &poor))
		if len(poor) > 0 {
			t.Errorf("contrast below 4.5: %v", poor)
		}
	}
}

// contrast lists the pairs of the palette that WCAG 2 level AA finds too faint for text.
const contrast = `(() => {
	const style = getComputedStyle(document.documentElement);
	const light = (name) => { const h = style.getPropertyValue("--" + name).trim().slice(1), f = h.length === 3 ? [...h].map((c) => c + c) : h.match(/../g);
		const [r, g, b] = f.map((x) => parseInt(x, 16) / 255).map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b; };
	const pairs = [["ink", "paper"], ["ink", "card"], ["soft", "paper"], ["soft", "card"], ["good", "good-bg"], ["warn", "warn-bg"], ["bad", "bad-bg"],
		["good", "card"], ["warn", "card"], ["bad", "card"], ["card", "accent"], ["on", "over"],
		...[0, 1, 2, 3, 4, 5].map((i) => ["ink", "l" + i]), ...[6, 7, 8, 9, 10].map((i) => ["on", "l" + i])];
	return pairs.filter(([a, b]) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05) < 4.5; }).map((p) => p.join(" on "));
})()`
