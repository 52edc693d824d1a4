// Package livepage serves a page to look at: the pools of this manager as they are now, read-only.
// It is one document without outside assets, put together from the files beside this one when the
// process starts. The page itself holds no data and needs no authentication; what it shows it asks of
// the lease API, as the person whose token it was given.
package livepage
