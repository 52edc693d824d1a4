// Package routertest builds pools for tests: a table under virtual time with healthy backends,
// a world in which only what a test is about needs saying.
package routertest
