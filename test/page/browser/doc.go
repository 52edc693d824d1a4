// Package browser drives a headless Chromium through its DevTools protocol, over a pair of pipes: no
// port, no driver and no library.
package browser
