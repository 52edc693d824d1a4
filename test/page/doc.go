// Package page opens the page to look at in a real browser while simulated engines work, clicks
// through it and keeps what was seen in .cache/page.
package page
