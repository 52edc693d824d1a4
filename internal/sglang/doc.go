// Package sglang is a typed client of the HTTP API of one SGLang engine: its health, what it
// says about itself, its load, and the calls by which the operator aborts, pauses, updates and
// resumes it. It never sends a generation.
//
// What holds for every call:
//
//   - The caller's context bounds it; the package adds no time limit of its own.
//   - Replies are read up to a stated size. A longer one fails with ErrReplyTooLarge.
//   - No redirect is followed: an engine that answers 3xx is not the engine that was named.
//   - Nothing is retried here, except that a 404 for a route that older engines know under
//     another name is followed by one call of that name.
//   - Connections idle for over two seconds are not reused (see NewTransport), because the
//     engine closes its side after five.
//   - Keys are asked for on each call, so that a rotated secret is used at once, and never
//     appear in an error.
package sglang
