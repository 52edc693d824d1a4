// Package wire speaks HTTP/1.1 to engines, one exchange per connection at a time, and knows how
// much of a request the operating system has taken. That is what at-most-once stands on: a request
// of which nothing was taken may be sent elsewhere, any other may not. The transport of net/http
// was considered and refused: it decides by itself when to send a request again, tells of written
// bytes through callbacks that run before the bytes are flushed, and hands every exchange to two
// more goroutines.
//
// What holds:
//
//   - Nothing is ever sent twice, and no redirect is followed.
//   - A connection is new, or was idle for less than two seconds and is seen to be open still:
//     the engine closes its side after five.
//   - A connection is used again only after the whole request was written and the whole reply was
//     read.
//   - The end of the caller's context cuts the connection, which is how an engine learns that
//     its client has gone.
//   - There is no time limit on an engine's silence here; that is the caller's.
package wire
