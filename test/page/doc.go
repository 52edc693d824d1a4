// Package page opens the page to look at in a real browser: legible at a thousand backends, used by
// keyboard, read aloud. It keeps what was seen in .cache/page. A person's way through it while sessions run
// and the leader changes is among the stories of test/e2e.
package page
